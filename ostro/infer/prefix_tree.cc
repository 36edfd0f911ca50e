#include "ostro/infer/prefix_tree.h"

#include <algorithm>
#include <set>

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
  if (before != nodes_.end()) ++before->second.behind;
  nodes_[name] = {parent, {tokens.begin(), tokens.end()}, page, 0, ++clock_};
  return true;
}

std::optional<int32_t> PrefixTree::evict(const IsFree& is_free) {
  auto oldest = nodes_.end();
  for (auto i = nodes_.begin(); i != nodes_.end(); ++i)
    if (i->second.behind == 0 && is_free(i->second.page) &&
        (oldest == nodes_.end() || i->second.used < oldest->second.used))
      oldest = i;
  if (oldest == nodes_.end()) return std::nullopt;
  const int32_t page = oldest->second.page;
  if (const auto parent = nodes_.find(oldest->second.parent); parent != nodes_.end()) --parent->second.behind;
  nodes_.erase(oldest);
  return page;
}

int64_t PrefixTree::evictable(const IsFree& is_free) const {
  std::set<Name> kept;  // those that are held, and all before them
  for (const auto& [key, node] : nodes_) {
    if (is_free(node.page)) continue;
    for (auto at = nodes_.find(key); at != nodes_.end() && kept.insert(at->first).second;)
      at = nodes_.find(at->second.parent);
  }
  return std::ssize(nodes_) - std::ssize(kept);
}

int64_t PrefixTree::count(const IsFree& is_free) const {
  return std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& n) { return is_free(n.second.page); });
}

std::vector<int32_t> PrefixTree::clear() {
  std::vector<int32_t> out;
  for (const auto& [key, node] : nodes_) out.push_back(node.page);
  nodes_.clear();
  return out;
}

}  // namespace ostro::infer
