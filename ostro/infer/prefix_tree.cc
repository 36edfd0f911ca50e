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

std::vector<int32_t> PrefixTree::find(const Name& root, std::span<const int32_t> tokens) {
  std::vector<int32_t> out;
  ++clock_;
  for (Name at = root; std::ssize(tokens) >= kPageSlots; tokens = tokens.subspan(kPageSlots)) {
    const auto ids = tokens.first(kPageSlots);
    at = name(at, ids);
    const auto found = nodes_.find(at);
    if (found == nodes_.end() || !std::equal(ids.begin(), ids.end(), found->second.tokens.begin())) break;
    found->second.used = clock_;
    out.push_back(found->second.page);
  }
  return out;
}

std::optional<int32_t> PrefixTree::page(const Name& name, std::span<const int32_t> tokens) const {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || !std::equal(tokens.begin(), tokens.end(), found->second.tokens.begin()))
    return std::nullopt;
  return found->second.page;
}

bool PrefixTree::insert(const Name& root, const Name& parent, std::span<const int32_t> tokens, int32_t page) {
  const Name key = name(parent, tokens);
  const auto before = nodes_.find(parent);
  if (nodes_.contains(key) || (parent != root && before == nodes_.end())) return false;
  if (before != nodes_.end()) ++before->second.behind;
  nodes_[key] = {parent, {tokens.begin(), tokens.end()}, page, 0, ++clock_};
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
