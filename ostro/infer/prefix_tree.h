// PrefixTree: pages of texts that may come again, whole ones and the last ones of texts that are over. A page
// is found by all tokens in front of it and those that it has.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/base/sha256.h"

namespace ostro::infer {

// A page is named by SHA-256 of the name of the page before it and its tokens, of which a whole one has 128;
// in front of the first one stands the name of the owner. Tokens are compared, too. Nothing is behind a page
// that is not whole. The tree names pages and does not hold them: who inserts or removes one shares or drops
// it. Not thread-safe.
class PrefixTree {
 public:
  using Name = Sha256Digest;
  // Whether nothing but the tree holds a page.
  using IsFree = std::function<bool(int32_t page)>;

  // The longest beginning of a text that is there: whole pages, and behind them the first `rows` positions of
  // the page `part`, 0 to 127, whatever else that page has.
  struct Found {
    std::vector<int32_t> pages;
    int32_t part = -1;
    int64_t rows = 0;
  };
  // What became of a page that was to be inserted.
  struct Inserted {
    bool done = false;
    std::optional<int32_t> replaced;  // a page that is not whole, whose tokens are the first of this one's
  };

  static Name root(std::string_view owner);
  // The name of a page with these 1 to 128 tokens behind `parent`.
  static Name name(const Name& parent, std::span<const int32_t> tokens);

  // What there is of `tokens`, which counts as used now.
  Found find(const Name& root, std::span<const int32_t> tokens);
  // The page of this name, if it has these tokens.
  std::optional<int32_t> page(const Name& name, std::span<const int32_t> tokens);
  // Puts the page of this name and these tokens behind `parent`, a root or a page of the tree. Not done, and
  // nothing is changed, if its parent is gone or a page that begins with its tokens is there.
  Inserted insert(const Name& root, const Name& parent, const Name& name, std::span<const int32_t> tokens,
                  int32_t page);
  // Removes the page that was used least recently, of those behind which there is none and which are free.
  // Returns it; nothing: there is none.
  std::optional<int32_t> evict(const IsFree& is_free);
  // Removes all; returns them.
  std::vector<int32_t> clear();

 private:
  struct Node {
    Name parent;
    std::vector<int32_t> tokens;
    int32_t page = 0;
    int64_t behind = 0;  // pages that have this one as their parent
    uint64_t used = 0;
  };
  using Nodes = std::map<Name, Node>;
  // The parent and the tokens of each node. So the pages behind a parent that begin most like some tokens are
  // the neighbours of these.
  using Places = std::map<std::pair<Name, std::vector<int32_t>>, Name>;

  // The node of this name, if it has these tokens; else null.
  Node* node(const Name& name, std::span<const int32_t> tokens);
  void use(const Name& name, Node& node);
  // Removes an end.
  int32_t remove(Nodes::iterator end);
  // The page behind `parent` that has the most of the first `tokens`, and how many of them.
  std::pair<Places::const_iterator, int64_t> most_like(const Name& parent,
                                                       std::vector<int32_t> tokens) const;
  // The page behind `parent` that is not whole and has nothing but the first of `tokens`.
  Nodes::iterator beginning_of(const Name& parent, std::vector<int32_t> tokens);

  Nodes nodes_;
  Places places_;
  std::set<std::pair<uint64_t, Name>> ends_;  // Node::used and name of those behind which there is none
  uint64_t clock_ = 0;
};

}  // namespace ostro::infer
