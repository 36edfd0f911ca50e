#include "ostro/infer/prefix_tree.h"

#include <algorithm>

#include "ostro/ir/program/attention_limits.h"

namespace ostro::infer {

using ir::kPageSlots;

PrefixTree::Name PrefixTree::root(std::string_view owner) { return sha256(owner); }

PrefixTree::Name PrefixTree::name(const Name& parent, std::span<const int32_t> tokens) {
  return Sha256().update(std::as_bytes(std::span(parent))).update(std::as_bytes(tokens)).finish();
}

PrefixTree::Node* PrefixTree::node(const Name& name, std::span<const int32_t> tokens) {
  const auto found = nodes_.find(name);
  const bool is_it =
      found != nodes_.end() && std::equal(tokens.begin(), tokens.end(), found->second.tokens.begin());
  return is_it ? &found->second : nullptr;
}

std::vector<int32_t> PrefixTree::find(const Name& root, std::span<const int32_t> tokens) {
  std::vector<int32_t> out;
  ++clock_;
  for (Name at = root; std::ssize(tokens) >= kPageSlots; tokens = tokens.subspan(kPageSlots)) {
    const auto ids = tokens.first(kPageSlots);
    at = name(at, ids);
    Node* found = node(at, ids);
    if (found == nullptr) break;
    if (ends_.erase({found->used, at}) > 0) ends_.emplace(clock_, at);
    found->used = clock_;
    out.push_back(found->page);
  }
  return out;
}

std::optional<int32_t> PrefixTree::page(const Name& name, std::span<const int32_t> tokens) {
  const Node* found = node(name, tokens);
  return found != nullptr ? std::optional(found->page) : std::nullopt;
}

bool PrefixTree::insert(const Name& root, const Name& parent, const Name& name,
                        std::span<const int32_t> tokens, int32_t page) {
  const auto before = nodes_.find(parent);
  if (nodes_.contains(name) || (parent != root && before == nodes_.end())) return false;
  if (before != nodes_.end() && before->second.behind++ == 0) ends_.erase({before->second.used, parent});
  nodes_[name] = {parent, {tokens.begin(), tokens.end()}, page, 0, ++clock_};
  ends_.emplace(clock_, name);
  return true;
}

std::optional<int32_t> PrefixTree::evict(const IsFree& is_free) {
  const auto oldest = std::find_if(ends_.begin(), ends_.end(),
                                   [&](const auto& end) { return is_free(nodes_.at(end.second).page); });
  if (oldest == ends_.end()) return std::nullopt;
  const auto found = nodes_.find(oldest->second);
  ends_.erase(oldest);
  const int32_t page = found->second.page;
  if (const auto parent = nodes_.find(found->second.parent);
      parent != nodes_.end() && --parent->second.behind == 0)
    ends_.emplace(parent->second.used, parent->first);
  nodes_.erase(found);
  return page;
}

std::vector<int32_t> PrefixTree::clear() {
  std::vector<int32_t> out;
  for (const auto& [key, node] : nodes_) out.push_back(node.page);
  nodes_.clear();
  ends_.clear();
  return out;
}

}  // namespace ostro::infer
