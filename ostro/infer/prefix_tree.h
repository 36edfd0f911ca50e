// PrefixTree: whole pages of texts that may come again. A page is found by all tokens up to its end.
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

// A page is named by SHA-256 of the name of the page before it and its 128 tokens; in front of the first one
// stands the name of the owner. Tokens are compared, too. The tree names pages and does not hold them: who
// inserts or removes one shares or drops it. Not thread-safe.
class PrefixTree {
 public:
  using Name = Sha256Digest;
  // Whether nothing but the tree holds a page.
  using IsFree = std::function<bool(int32_t page)>;

  static Name root(std::string_view owner);
  // The name of a page with these 128 tokens behind `parent`.
  static Name name(const Name& parent, std::span<const int32_t> tokens);

  // The pages of the longest beginning of `tokens` that is there, which counts as used now.
  std::vector<int32_t> find(const Name& root, std::span<const int32_t> tokens);
  // The page of this name, if it has these tokens.
  std::optional<int32_t> page(const Name& name, std::span<const int32_t> tokens);
  // Puts the page of this name and these tokens behind `parent`, a root or a page of the tree. Returns false,
  // and changes nothing, if it is there already or its parent is gone.
  bool insert(const Name& root, const Name& parent, const Name& name, std::span<const int32_t> tokens,
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

  // The node of this name, if it has these tokens; else null.
  Node* node(const Name& name, std::span<const int32_t> tokens);

  std::map<Name, Node> nodes_;
  std::set<std::pair<uint64_t, Name>> ends_;  // Node::used and name of those behind which there is none
  uint64_t clock_ = 0;
};

}  // namespace ostro::infer
