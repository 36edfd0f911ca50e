#include "ostro/cluster/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/base/log.h"
#include "ostro/cluster/message.h"

namespace ostro::cluster {
namespace {

constexpr size_t kMostShown = 200;  // bytes of a value in a message

std::string place(const Hello& hello) {
  return fmt::format("{} (pid {})", shortened(hello.host, kMostShown), hello.pid);
}

std::string differs(std::string_view name, const std::string* first, const Hello& there,
                    const std::string* second, const Hello& here) {
  const auto shown = [](const std::string* value) {
    return value == nullptr ? std::string("not given") : fmt::format("'{}'", shortened(*value, kMostShown));
  };
  return fmt::format("'{}' is {} on {}, but {} on {}: it must be equal in all workers",
                     shortened(name, kMostShown), shown(second), place(here), shown(first), place(there));
}

const std::string* find(const Hello& hello, const std::string& name) {
  for (const auto& [own_name, value] : hello.equal) {
    if (own_name == name) return &value;
  }
  return nullptr;
}

// What keeps `here` from being in a job with `there`; "" when nothing does.
std::string difference(const Hello& there, const Hello& here) {
  if (there.job != here.job) return differs("job", &there.job, there, &here.job, here);
  if (there.equal == here.equal) return "";
  for (const auto& [name, value] : there.equal) {
    const std::string* own = find(here, name);
    if (own == nullptr || *own != value) return differs(name, &value, there, own, here);
  }
  for (const auto& [name, value] : here.equal) {
    if (find(there, name) == nullptr) return differs(name, nullptr, there, &value, here);
  }
  return "";
}

}  // namespace

Roster::Roster(int64_t workers, int64_t last_epoch, Send send)
    : workers_(workers), send_(std::move(send)), epoch_(last_epoch) {}

Result<int64_t> Roster::add(const Hello& hello) {
  if (!members_.empty()) {
    const std::string different = difference(members_.begin()->second.hello, hello);
    if (!different.empty()) return invalid_argument(different);
  }
  members_[next_member_].hello = hello;
  return next_member_++;
}

void Roster::remove(int64_t member, std::string_view why) {
  const auto found = members_.find(member);
  OSTRO_CHECK(found != members_.end(), "no member {}", member);
  const Entry gone = std::move(found->second);
  members_.erase(found);
  if (gone.rank >= 0) end(fmt::format("worker {} on {} is lost: {}", gone.rank, place(gone.hello), why));
}

void Roster::end_seen(int64_t member, int64_t number) {
  Entry& entry = members_.at(member);
  if (entry.end_not_seen == number) entry.end_not_seen = 0;
}

void Roster::fault(int64_t member, int64_t number, std::string_view why) {
  if (!stale(member, number).empty()) return;
  const Entry& entry = members_.at(member);
  end(fmt::format("worker {} on {} cannot go on: {}", entry.rank, place(entry.hello), why));
}

void Roster::end(std::string_view reason) {
  if (!goes_on_) return;
  goes_on_ = false;
  values_.clear();
  last_end_ = shortened(reason, kMostBytesOfReason);
  log_info(fmt::format("epoch {} ended: {}", epoch_, last_end_));
  for (auto& [member, entry] : members_) {
    if (std::exchange(entry.rank, -1) < 0) continue;
    entry.end_not_seen = epoch_;
    send_(member, Message(Kind::kEnd).number(epoch_).text(last_end_).bytes());
  }
}

bool Roster::can_begin() const {
  return !goes_on_ && size() >= workers_ && std::all_of(members_.begin(), members_.end(), [](const auto& m) {
    return m.second.end_not_seen == 0;
  });
}

void Roster::begin() {
  OSTRO_CHECK(can_begin(), "an epoch begins before it can");
  ++epoch_;
  goes_on_ = true;
  log_info(fmt::format("epoch {} begins with {} workers", epoch_, workers_));
  int64_t rank = 0;
  for (auto& [member, entry] : members_) {
    if (rank == workers_) break;
    entry.rank = rank++;
    send_(member, Message(Kind::kEpoch).number(epoch_).number(entry.rank).number(workers_).bytes());
  }
}

Event::Worker Roster::worker(int64_t member) const {
  const Hello& hello = members_.at(member).hello;
  return {hello.host, hello.pid};
}

std::vector<Event::Worker> Roster::in_epoch() const {
  std::map<int64_t, int64_t> by_rank;
  for (const auto& [member, entry] : members_)
    if (entry.rank >= 0) by_rank[entry.rank] = member;
  std::vector<Event::Worker> out;
  for (const auto& [rank, member] : by_rank) out.push_back(worker(member));
  return out;
}

std::string Roster::stale(int64_t member, int64_t number) const {
  if (number != epoch_) return fmt::format("epoch {} does not go on; the last is {}", number, epoch_);
  if (!goes_on_) return last_end_;
  return members_.at(member).rank < 0 ? fmt::format("this worker is not in epoch {}", number) : "";
}

void Roster::reply(int64_t member, int64_t request, const Error& error) {
  send_(member, Message(Kind::kReply)
                    .number(request)
                    .number(static_cast<int64_t>(error.code()))
                    .text(shortened(error.message(), kMostBytesOfReason))
                    .bytes());
}

void Roster::reply(int64_t member, int64_t request, std::string_view value) {
  send_(member, Message(Kind::kReply).number(request).number(kReplyOk).text(value).bytes());
}

void Roster::set(int64_t member, int64_t request, int64_t number, const std::string& key,
                 std::string_view value) {
  if (const std::string why = stale(member, number); !why.empty())
    return reply(member, request, io_error(why));
  const Status done = values_.set(key, std::string(value));
  if (!done.ok()) return reply(member, request, done.error());
  reply(member, request, "");
  for (const Waiter& waiter : values_.take_waiters(key)) reply(waiter.member, waiter.request, value);
}

void Roster::get(int64_t member, int64_t request, int64_t number, const std::string& key) {
  if (const std::string why = stale(member, number); !why.empty())
    return reply(member, request, io_error(why));
  if (const std::string* value = values_.find(key)) return reply(member, request, *value);
  const Status waits = values_.wait({member, request}, key);
  if (!waits.ok()) reply(member, request, waits.error());
}

void Roster::cancel(int64_t member, int64_t request) { values_.cancel({member, request}); }

}  // namespace ostro::cluster
