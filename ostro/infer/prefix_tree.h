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
// that is not whole, and no page begins with all tokens of another one behind the same parent. The tree names
// pages and does not hold them: who inserts or removes one shares or drops it. Not thread-safe.
class PrefixTree {
 public:
  // The fewest tokens of a page that is not whole, and the fewest that make a part: to copy a page of a Llama
  // of 1.1 B parameters takes about as long as to run a few rows.
  static constexpr int64_t kLeastTokens = 16;

  using Name = Sha256Digest;
  // Whether nothing but the tree holds a page.
  using IsFree = std::function<bool(int32_t page)>;
  // The longest beginning of a text that is there: whole pages, and behind them the first `rows` positions of
  // the page `part`, whatever else that page has: kLeastTokens to 127, or none.
  struct Found {
    std::vector<int32_t> pages;
    std::vector<Name> names;  // of these pages
    int32_t part = -1;
    int64_t rows = 0;
  };
  // What became of a page that was to be inserted.
  struct Inserted {
    Name name;
    bool done = false;
    std::optional<int32_t> there;     // a page that has these tokens already
    std::optional<int32_t> replaced;  // a page that is not whole, with whose tokens this one begins
  };

  static Name root(std::string_view owner);

  // What there is of `tokens`, which counts as used now.
  Found find(const Name& root, std::span<const int32_t> tokens);
  // Puts a page with these tokens, kLeastTokens to 128, behind `parent`, a root or a page of the tree. Not
  // done, and nothing is changed, if its parent is gone or a page that begins with its tokens is there.
  Inserted insert(const Name& root, const Name& parent, std::span<const int32_t> tokens, int32_t page);
  // Removes the page that was used least recently, of those behind which there is none and which are free.
  // Returns it; nothing: there is none.
  std::optional<int32_t> evict(const IsFree& is_free);
  // Removes all; returns them.
  std::vector<int32_t> clear();

 private:
  // Parents and tokens. So the pages behind a parent that begin most like some tokens are the neighbours of
  // these.
  using Places = std::map<std::pair<Name, std::vector<int32_t>>, Name>;
  struct Node {
    Places::iterator place;
    int32_t page = 0;
    int64_t behind = 0;  // pages that have this one as their parent
    uint64_t used = 0;

    const Name& parent() const { return place->first.first; }
    const std::vector<int32_t>& tokens() const { return place->first.second; }
  };
  using Nodes = std::map<Name, Node>;

  // The name of a page with these tokens behind `parent`.
  static Name name(const Name& parent, std::span<const int32_t> tokens);
  // The node of this name, if it has these tokens; else the end.
  Nodes::iterator node(const Name& name, std::span<const int32_t> tokens);
  void use(Nodes::iterator node);
  // Removes a node behind which there is none.
  int32_t remove(Nodes::iterator end);
  // The page behind `parent` that has the most of the first `tokens`, and how many of them.
  std::pair<Nodes::iterator, int64_t> most_like(const Name& parent, std::span<const int32_t> tokens);

  Nodes nodes_;
  Places places_;
  std::set<std::pair<uint64_t, Name>> ends_;  // Node::used and name of those behind which there is none
  uint64_t clock_ = 0;
};

}  // namespace ostro::infer
