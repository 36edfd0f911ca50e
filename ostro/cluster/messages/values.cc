#include "ostro/cluster/messages/values.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "ostro/cluster/messages/message.h"

namespace ostro::cluster {
namespace {

constexpr size_t kMostValueBytes = size_t{64} << 20;
constexpr int64_t kMostWaits = 1024;  // of a member
constexpr size_t kNodeBytes = 128;    // about what an entry of a map takes besides its text

// The group of a key and its number there; nothing when the key is in no group.
struct Place {
  std::string_view group;
  int64_t number = 0;
};
std::optional<Place> place_of(std::string_view key) {
  const size_t slash = key.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view digits = key.substr(slash + 1);
  Place place{key.substr(0, slash + 1), 0};
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), place.number);
  if (error != std::errc() || end != digits.end() || fmt::to_string(place.number) != digits)
    return std::nullopt;
  return place;
}

}  // namespace

Values::Values() : none_(packed({})) {}

Status Values::set(const std::string& key, std::string value) {
  const auto old = values_.find(key);
  const size_t freed = old == values_.end() ? 0 : kNodeBytes + key.size() + old->second.size();
  const size_t bytes = bytes_ - freed + kNodeBytes + key.size() + value.size();
  if (bytes > kMostValueBytes) {
    return unsupported(
        fmt::format("key '{}': the keys of an epoch may take {} bytes together", key, kMostValueBytes));
  }
  bytes_ = bytes;
  values_[key] = std::move(value);
  if (const auto place = place_of(key)) {
    auto group = groups_.find(place->group);
    if (group == groups_.end()) group = groups_.emplace(place->group, Group()).first;
    Group& g = group->second;
    g.numbers.insert(place->number);
    g.count = -1;
    while (g.numbers.contains(g.whole)) ++g.whole;
  }
  return {};
}

const std::string* Values::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const std::string* Values::find_all(const std::string& group, int64_t count) {
  if (count == 0) return &none_;
  const auto found = groups_.find(group);
  if (found == groups_.end() || found->second.whole < count) return nullptr;
  Group& g = found->second;
  if (g.count == count) return &g.all;
  std::vector<std::string_view> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(values_.at(group + fmt::to_string(i)));
  g.all = packed(values);
  g.count = count;
  return &g.all;
}

Status Values::add(Waiter waiter, Wanted wanted) {
  const auto first = waits_.lower_bound({waiter.member, std::numeric_limits<int64_t>::min()});
  const auto last = waits_.upper_bound({waiter.member, std::numeric_limits<int64_t>::max()});
  if (std::distance(first, last) >= kMostWaits)
    return unsupported(
        fmt::format("key '{}': a worker may wait for {} keys at a time", wanted.name, kMostWaits));
  cancel(waiter);
  (wanted.count < 0 ? by_key_ : by_group_)[wanted.name].insert(waiter);
  waits_[waiter] = std::move(wanted);
  return {};
}

Status Values::wait(Waiter waiter, const std::string& key) { return add(waiter, {key, -1}); }

Status Values::wait_all(Waiter waiter, const std::string& group, int64_t count) {
  return add(waiter, {group, count});
}

std::vector<Answer> Values::take_answers(const std::string& key) {
  std::vector<Answer> answers;
  if (const auto found = by_key_.find(key); found != by_key_.end())
    for (const Waiter& waiter : found->second) answers.push_back({waiter, values_.at(key)});
  const auto place = place_of(key);
  const auto group = place ? by_group_.find(std::string(place->group)) : by_group_.end();
  if (group != by_group_.end())
    for (const Waiter& waiter : group->second)
      if (const std::string* all = find_all(group->first, waits_.at(waiter).count))
        answers.push_back({waiter, *all});
  for (const Answer& answer : answers) cancel(answer.waiter);
  return answers;
}

void Values::cancel(Waiter waiter) {
  const auto found = waits_.find(waiter);
  if (found == waits_.end()) return;
  auto& by_name = found->second.count < 0 ? by_key_ : by_group_;
  const auto waiters = by_name.find(found->second.name);
  waiters->second.erase(waiter);
  if (waiters->second.empty()) by_name.erase(waiters);
  waits_.erase(found);
}

std::string packed(const std::vector<std::string_view>& values) {
  Message message(Kind::kReply);
  message.number(static_cast<int64_t>(values.size()));
  for (const std::string_view value : values) message.text(value);
  return message.bytes();
}

std::optional<std::vector<std::string>> unpacked(std::string_view text) {
  MessageReader reader(text);
  const int64_t count = reader.number();
  // A value takes eight bytes at least.
  if (count < 0 || count > static_cast<int64_t>(text.size() / 8)) return std::nullopt;
  std::vector<std::string> values;
  for (int64_t i = 0; i < count; ++i) values.emplace_back(reader.text());
  if (reader.kind() != Kind::kReply || !reader.done()) return std::nullopt;
  return values;
}

}  // namespace ostro::cluster
