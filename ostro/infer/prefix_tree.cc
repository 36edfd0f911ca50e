#include "ostro/infer/prefix_tree.h"

#include <algorithm>

#include "ostro/ir/program/attention_limits.h"

namespace ostro::infer {

using ir::kPageSlots;

namespace {

bool begins_with(std::span<const int32_t> tokens, std::span<const int32_t> first) {
  return tokens.size() >= first.size() && std::ranges::equal(tokens.first(first.size()), first);
}

}  // namespace

PrefixTree::Name PrefixTree::root(std::string_view owner) { return sha256(owner); }

PrefixTree::Name PrefixTree::name(const Name& parent, std::span<const int32_t> tokens) {
  return Sha256().update(std::as_bytes(std::span(parent))).update(std::as_bytes(tokens)).finish();
}

PrefixTree::Nodes::iterator PrefixTree::node(const Name& name, std::span<const int32_t> tokens) {
  const auto found = nodes_.find(name);
  return found != nodes_.end() && std::ranges::equal(tokens, found->second.tokens()) ? found : nodes_.end();
}

void PrefixTree::use(Nodes::iterator node) {
  if (ends_.erase({node->second.used, node->first}) > 0) ends_.emplace(clock_, node->first);
  node->second.used = clock_;
}

std::pair<PrefixTree::Nodes::iterator, int64_t> PrefixTree::most_like(const Name& parent,
                                                                      std::span<const int32_t> tokens) {
  std::pair<Nodes::iterator, int64_t> out{nodes_.end(), 0};
  const auto look = [&](Places::const_iterator at) {
    if (at->first.first != parent) return;
    const auto parted = std::ranges::mismatch(tokens, at->first.second);
    if (const int64_t same = parted.in1 - tokens.begin(); same > out.second)
      out = {nodes_.find(at->second), same};
  };
  const auto next = places_.lower_bound({parent, std::vector<int32_t>(tokens.begin(), tokens.end())});
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
    const auto found = node(name(at, ids), ids);
    if (found == nodes_.end()) break;
    use(found);
    out.pages.push_back(found->second.page);
    out.names.push_back(at = found->first);
  }
  const auto [like, rows] =
      most_like(at, tokens.first(std::min(tokens.size(), static_cast<size_t>(kPageSlots - 1))));
  if (rows < kLeastTokens) return out;
  use(like);
  out.part = like->second.page;
  out.rows = rows;
  return out;
}

// In the order of places, what begins with the tokens comes next behind them; with what they begin is just
// before them, since nothing in between begins with that.
PrefixTree::Inserted PrefixTree::insert(const Name& root, const Name& parent, std::span<const int32_t> tokens,
                                        int32_t page) {
  const Name name = PrefixTree::name(parent, tokens);
  Inserted out{name, false, {}, {}};
  const auto before = nodes_.find(parent);
  if (const auto found = node(name, tokens); found != nodes_.end()) out.there = found->second.page;
  if ((parent != root && before == nodes_.end()) || nodes_.contains(name)) return out;
  std::pair place{parent, std::vector<int32_t>(tokens.begin(), tokens.end())};
  const auto next = places_.lower_bound(place);
  if (next != places_.end() && next->first.first == parent && begins_with(next->first.second, tokens))
    return out;
  out.done = true;
  if (before != nodes_.end() && before->second.behind++ == 0) ends_.erase({before->second.used, parent});
  if (next != places_.begin())
    if (const auto last = std::prev(next);
        last->first.first == parent && begins_with(tokens, last->first.second))
      out.replaced = remove(nodes_.find(last->second));
  nodes_[name] = {places_.emplace(std::move(place), name).first, page, 0, ++clock_};
  ends_.emplace(clock_, name);
  return out;
}

int32_t PrefixTree::remove(Nodes::iterator end) {
  const Node node = end->second;
  ends_.erase({node.used, end->first});
  if (const auto parent = nodes_.find(node.parent()); parent != nodes_.end() && --parent->second.behind == 0)
    ends_.emplace(parent->second.used, parent->first);
  places_.erase(node.place);
  nodes_.erase(end);
  return node.page;
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
