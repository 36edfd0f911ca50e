#include "ostro/cluster/values.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <utility>

namespace ostro::cluster {
namespace {

constexpr size_t kMostValueBytes = size_t{64} << 20;
constexpr int64_t kMostWaits = 1024;  // of a member
constexpr size_t kNodeBytes = 128;    // about what an entry of a map takes besides its text

}  // namespace

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
  return {};
}

const std::string* Values::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

Status Values::wait(Waiter waiter, const std::string& key) {
  const auto first = waits_.lower_bound({waiter.member, std::numeric_limits<int64_t>::min()});
  const auto last = waits_.upper_bound({waiter.member, std::numeric_limits<int64_t>::max()});
  if (std::distance(first, last) >= kMostWaits) {
    return unsupported(fmt::format("key '{}': a worker may wait for {} keys at a time", key, kMostWaits));
  }
  cancel(waiter);
  waits_[waiter] = key;
  by_key_[key].insert(waiter);
  return {};
}

std::vector<Waiter> Values::take_waiters(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return {};
  std::vector<Waiter> waiters(found->second.begin(), found->second.end());
  for (const Waiter& waiter : waiters) waits_.erase(waiter);
  by_key_.erase(found);
  return waiters;
}

void Values::cancel(Waiter waiter) {
  const auto found = waits_.find(waiter);
  if (found == waits_.end()) return;
  const auto waiters = by_key_.find(found->second);
  waiters->second.erase(waiter);
  if (waiters->second.empty()) by_key_.erase(waiters);
  waits_.erase(found);
}

}  // namespace ostro::cluster
