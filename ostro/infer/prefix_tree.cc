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
  return found != nodes_.end() && std::ranges::equal(tokens, found->second.tokens) ? &found->second : nullptr;
}

void PrefixTree::use(const Name& name, Node& node) {
  if (ends_.erase({node.used, name}) > 0) ends_.emplace(clock_, name);
  node.used = clock_;
}

std::pair<PrefixTree::Places::const_iterator, int64_t> PrefixTree::most_like(
    const Name& parent, std::vector<int32_t> tokens) const {
  const std::pair key{parent, std::move(tokens)};
  std::pair<Places::const_iterator, int64_t> out{places_.end(), 0};
  const auto look = [&](Places::const_iterator at) {
    if (at->first.first != parent) return;
    const auto parted = std::ranges::mismatch(at->first.second, key.second);
    if (const int64_t same = parted.in2 - key.second.begin(); same > out.second) out = {at, same};
  };
  const auto next = places_.lower_bound(key);
  if (next != places_.end()) look(next);
  if (next != places_.begin()) look(std::prev(next));
  return out;
}

PrefixTree::Found PrefixTree::find(const Name& root, std::span<const int32_t> tokens) {
  Found out;
  ++clock_;
  Name at = root;
  for (; std::ssize(tokens) >= kPageSlots; tokens = tokens.subspan(kPageSlots)) {
    const auto ids = tokens.first(kPageSlots);
    const Name next = name(at, ids);
    Node* found = node(next, ids);
    if (found == nullptr) break;
    use(next, *found);
    out.pages.push_back(found->page);
    at = next;
  }
  const auto rest = tokens.first(std::min(tokens.size(), static_cast<size_t>(kPageSlots - 1)));
  const auto [place, rows] = most_like(at, {rest.begin(), rest.end()});
  if (rows == 0) return out;
  Node& like = nodes_.at(place->second);
  use(place->second, like);
  out.part = like.page;
  out.rows = rows;
  return out;
}

std::optional<int32_t> PrefixTree::page(const Name& name, std::span<const int32_t> tokens) {
  const Node* found = node(name, tokens);
  return found != nullptr ? std::optional(found->page) : std::nullopt;
}

// What stands between such a page and `tokens` in the order of places begins with it, too: each look back
// leaves fewer tokens.
PrefixTree::Nodes::iterator PrefixTree::beginning_of(const Name& parent, std::vector<int32_t> tokens) {
  while (!tokens.empty()) {
    const auto [place, rows] = most_like(parent, tokens);
    if (rows == 0) break;
    if (rows == std::ssize(place->first.second) && rows < kPageSlots) return nodes_.find(place->second);
    tokens.resize(static_cast<size_t>(std::min(rows, std::ssize(tokens) - 1)));
  }
  return nodes_.end();
}

PrefixTree::Inserted PrefixTree::insert(const Name& root, const Name& parent, const Name& name,
                                        std::span<const int32_t> tokens, int32_t page) {
  const std::vector<int32_t> ids(tokens.begin(), tokens.end());
  const auto before = nodes_.find(parent);
  if ((parent != root && before == nodes_.end()) || nodes_.contains(name) ||
      most_like(parent, ids).second == std::ssize(ids))
    return {};
  Inserted out{true, {}};
  if (before != nodes_.end() && before->second.behind++ == 0) ends_.erase({before->second.used, parent});
  if (const auto replaced = beginning_of(parent, ids); replaced != nodes_.end())
    out.replaced = remove(replaced);
  nodes_[name] = {parent, ids, page, 0, ++clock_};
  places_[{parent, ids}] = name;
  ends_.emplace(clock_, name);
  return out;
}

int32_t PrefixTree::remove(Nodes::iterator end) {
  const Node& node = end->second;
  const int32_t page = node.page;
  ends_.erase({node.used, end->first});
  places_.erase({node.parent, node.tokens});
  if (const auto parent = nodes_.find(node.parent);
      parent != nodes_.end() && --parent->second.behind == 0)
    ends_.emplace(parent->second.used, parent->first);
  nodes_.erase(end);
  return page;
}

std::optional<int32_t> PrefixTree::evict(const IsFree& is_free) {
  const auto oldest = std::find_if(ends_.begin(), ends_.end(),
                                   [&](const auto& end) { return is_free(nodes_.at(end.second).page); });
  if (oldest == ends_.end()) return std::nullopt;
  return remove(nodes_.find(oldest->second));
}

std::vector<int32_t> PrefixTree::clear() {
  std::vector<int32_t> out;
  for (const auto& [key, node] : nodes_) out.push_back(node.page);
  nodes_.clear();
  places_.clear();
  ends_.clear();
  return out;
}

}  // namespace ostro::infer
