#include "ostro/cluster/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/base/log.h"
#include "ostro/cluster/messages/message.h"
#include "ostro/dist/key_value.h"

namespace ostro::cluster {
namespace {

constexpr size_t kMostShown = 400;     // bytes of a value in a message
constexpr size_t kReplyBytes = 25;     // of a kReply besides its value
constexpr int64_t kMostKeys = 65'536;  // of a group, that one answer may have
// For members of an epoch, to a new coordinator: a time for all, and one for each.
constexpr std::chrono::seconds kComeBack{10};
constexpr std::chrono::milliseconds kComeBackEach{50};

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

// The first value in which two workers differ, as a message; "" when they can be in one job.
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

Roster::Roster(const Sizes& sizes, int64_t last_epoch, Send send, std::optional<Hello> expected)
    : sizes_(sizes),
      send_(std::move(send)),
      expected_hello_(std::move(expected)),
      first_(last_epoch),
      last_(last_epoch),
      restored_(last_epoch) {}

// A Hello with an epoch comes from a member whose connection, or whose coordinator, was lost. If this
// coordinator was restarted and the journal names that epoch, the epoch continues: it is restored with the
// first returning member, and is whole when all of them are back. Otherwise the epoch has ended meanwhile,
// and the member must confirm this before another one begins.
Result<int64_t> Roster::add(const Hello& hello, Time now) {
  const Hello* first = expected_hello_ ? &*expected_hello_ : nullptr;
  if (first == nullptr && !members_.empty()) first = &members_.begin()->second.hello;
  if (first != nullptr) {
    const std::string different = difference(*first, hello);
    if (!different.empty()) return invalid_argument(different);
  }
  const int64_t member = next_member_++;
  Entry& entry = members_[member];
  entry.hello = hello;
  if (rates_.limit == 0) rates_ = {std::max<int64_t>(0, hello.slice_limit), hello.fastest_link};
  if (!hello.machine.empty()) know_slice(member);
  last_added_ = now;
  if (hello.epoch == 0) return member;
  entry.ready = true;
  last_ready_ = now;
  entry.was = hello.rank;
  entry.cells = cells_of(sizes_, hello.rank, hello.size);
  if (current_ == 0 && hello.epoch == restored_) {
    current_ = std::exchange(restored_, 0);
    expected_ = current_size_ = hello.size;
    expected_until_ = now + kComeBack + std::min(expected_, kMostKeys) * kComeBackEach;
    log_info(
        fmt::format("epoch {} of {} workers goes on; waiting for them to come back", current_, expected_));
  }
  if (expected_ > 0 && hello.epoch == current_) {
    entry.rank = hello.rank;
    entry.works = true;
    if (static_cast<int64_t>(in_order([](const Entry& e) { return e.rank >= 0; }).size()) == expected_)
      expected_ = 0;
  } else {
    entry.end_not_seen = hello.epoch;
  }
  return member;
}

void Roster::greet(int64_t member) {
  const int64_t number = members_.at(member).end_not_seen;
  if (number != 0)
    send_(member, Message(Kind::kEnd).number(number).text("the others went on without this worker").bytes());
  if (stops_) send_(member, Message(Kind::kStop).bytes());
  if (over_) send_(member, Message(Kind::kOver).number(*over_).bytes());
}

// A lost member ends the current epoch if it is in it, and drops the planned one if it is only in that. When
// the planned epoch is due, its members have left the current one: it becomes current first, and ends only if
// the lost member is in it.
void Roster::remove(int64_t member, std::string_view why) {
  const auto found = members_.find(member);
  OSTRO_CHECK(found != members_.end(), "no member {}", member);
  const Entry gone = std::move(found->second);
  members_.erase(found);
  if (over_) return;
  if (gone.rank >= 0 || gone.next_rank >= 0) fruitless_ = 0;
  const std::string reason =
      fmt::format("worker {} on {} is lost: {}", std::max(gone.rank, gone.next_rank), place(gone.hello), why);
  if (planned_is_due()) {
    promote();
    if (gone.next_rank >= 0) end(reason);
  } else if (gone.rank >= 0) {
    end(reason);
  } else if (gone.next_rank >= 0) {
    drop_planned(reason);
  }
}

void Roster::ready(int64_t member, Time now) {
  Entry& entry = members_.at(member);
  if (!std::exchange(entry.ready, true)) last_ready_ = now;
}

// A member of the current epoch leaves with the next planned epoch. If the others are too few for an epoch,
// the whole run is stopped instead.
void Roster::leaves(int64_t member) {
  Entry& entry = members_.at(member);
  entry.leaving = true;
  if (entry.rank < 0) return;
  log_info(fmt::format("worker {} on {} wants to leave", entry.rank, place(entry.hello)));
  if (fitting(in_order(&stays)).empty()) stop();
}

void Roster::end_seen(int64_t member, int64_t number) {
  Entry& entry = members_.at(member);
  if (entry.end_not_seen <= number) entry.end_not_seen = 0;
}

void Roster::began(int64_t member, int64_t number) {
  Entry& entry = members_.at(member);
  if (number == planned_ && entry.next_rank >= 0) promote();
  if (number == current_ && entry.rank >= 0) entry.works = true;
}

// Ends the current epoch, or the planned one, which is dropped as long as it is not due. True for a current
// one that was no planned one.
bool Roster::cut(int64_t number, const std::string& reason) {
  if (number == planned_) {
    if (planned_is_due()) {
      promote();
      end(reason);
    } else {
      drop_planned(reason);
    }
    return false;
  }
  // The current epoch when the planned one is due: its members have moved to the planned one.
  if (planned_is_due()) {
    promote();
    return false;
  }
  end(reason);
  return true;
}

// A new member has the slice of its machine, or tells it.
void Roster::know_slice(int64_t member) {
  Entry& entry = members_.at(member);
  const std::string& machine = entry.hello.machine;
  const auto known = machines_.find(machine);
  if (!entry.hello.slice.empty()) {
    const bool paired = std::any_of(members_.begin(), members_.end(), [&](const auto& other) {
      return other.first != member && other.second.hello.machine == machine;
    });
    MachineSlice& own = machines_[machine];
    if (own.slice.empty()) own.slice = entry.hello.slice;
    own.paired = own.paired || paired;
  } else if (known != machines_.end() && known->second.paired) {
    entry.hello.slice = known->second.slice;
    entry.found = true;
  }
}

bool Roster::slices(int64_t member, int64_t number, const FoundNames& told) {
  const std::vector<std::string>& names = told.names;
  if (number == 0 || !stale(member, number).empty()) return false;
  const auto rank_in = [&](const Entry& e) { return number == planned_ ? e.next_rank : e.rank; };
  const auto size = std::count_if(members_.begin(), members_.end(),
                                  [&](const auto& entry) { return rank_in(entry.second) >= 0; });
  if (rank_in(members_.at(member)) != 0 || size != static_cast<int64_t>(names.size())) return false;
  if (told.anew) machines_.clear();
  rates_ = {std::max<int64_t>(0, told.rates.limit), told.rates.fastest};
  std::set<std::string> once;
  for (auto& [other, entry] : members_) {
    const int64_t rank = rank_in(entry);
    Hello& hello = entry.hello;
    if (rank < 0 && told.anew && std::exchange(entry.found, false)) hello.slice.clear();
    if (rank < 0) continue;
    if (hello.slice.empty() || told.anew) {
      hello.slice = shortened(names[static_cast<size_t>(rank)], kMostBytesOfHost);
      entry.found = true;
    }
    if (hello.machine.empty()) continue;
    MachineSlice& machine = machines_[hello.machine];
    if (machine.slice.empty()) machine.slice = hello.slice;
    if (!once.insert(hello.machine).second) machine.paired = true;
  }
  if (!told.text.empty()) log_info(told.text);
  if (told.ends) cut(number, told.text);
  return true;
}

void Roster::fault(int64_t member, int64_t number, std::string_view why) {
  if (number == 0 || !stale(member, number).empty()) return;
  const Entry& entry = members_.at(member);
  const std::string reason = fmt::format("worker {} on {} cannot go on: {}",
                                         std::max(entry.rank, entry.next_rank), place(entry.hello), why);
  if (!cut(number, reason) || ++fruitless_ < kMostFruitless) return;
  log_error(fmt::format(
      "{} epochs in a row ended without a step, although no worker was lost: the run is given up; "
      "it goes on from its last checkpoint when the cause is mended. The last one ended because {}",
      fruitless_, reason));
  done(1);
}

void Roster::steps(int64_t done) {
  if (std::exchange(steps_, done) != done) fruitless_ = 0;
}

void Roster::done(int64_t status) {
  if (over_) return;
  over_ = status;
  for (const auto& [member, entry] : members_) send_(member, Message(Kind::kOver).number(status).bytes());
}

void Roster::stop() {
  stops_ = true;
  for (const auto& [member, entry] : members_) send_(member, Message(Kind::kStop).bytes());
}

// True when the leader of the planned epoch has set kAllPreparedKey: from then on its members may take it for
// current.
bool Roster::planned_is_due() const {
  if (planned_ == 0) return false;
  const auto values = values_.find(planned_);
  return values != values_.end() && values->second.find(dist::kAllPreparedKey) != nullptr;
}

// Where a member has begun the current epoch, cells are with those who are in it.
void Roster::note_cells() {
  const bool worked =
      std::any_of(members_.begin(), members_.end(), [](const auto& entry) { return entry.second.works; });
  if (!worked) return;
  for (auto& [member, entry] : members_) entry.cells = cells_of(sizes_, entry.rank, current_size_);
}

// Makes the planned epoch the current one. Its members know this already, so no message is sent. Until one of
// them has begun it, cells are with those who were in the epoch before.
void Roster::promote() {
  note_cells();
  values_.erase(current_);
  current_ = std::exchange(planned_, 0);
  current_size_ = planned_size_;
  log_info(fmt::format("epoch {} goes on", current_));
  for (auto& [member, entry] : members_) {
    entry.rank = std::exchange(entry.next_rank, -1);
    entry.works = false;
  }
}

void Roster::drop_planned(std::string_view reason) {
  log_info(fmt::format("epoch {} is given up: {}", planned_, reason));
  for (auto& [member, entry] : members_) {
    if (std::exchange(entry.next_rank, -1) < 0 && entry.rank < 0) continue;
    send_(member,
          Message(Kind::kDropped).number(planned_).text(shortened(reason, kMostBytesOfReason)).bytes());
  }
  values_.erase(planned_);
  planned_ = 0;
}

// Ends the current and the planned epoch. One message with the last number given out covers both; every
// member of either must confirm it before another epoch begins.
void Roster::end(std::string_view reason) {
  if (current_ == 0) return;
  last_end_ = shortened(reason, kMostBytesOfReason);
  log_info(fmt::format("epoch {} ended: {}", current_, last_end_));
  values_.erase(current_);
  if (planned_ != 0) values_.erase(planned_);
  current_ = planned_ = expected_ = 0;
  just_ended_ = true;
  note_cells();
  for (auto& [member, entry] : members_) {
    const int64_t next_rank = std::exchange(entry.next_rank, -1);
    const int64_t rank = std::max(std::exchange(entry.rank, -1), next_rank);
    if (rank < 0) continue;
    entry.was = rank;
    entry.end_not_seen = last_;
    entry.works = false;
    send_(member, Message(Kind::kEnd).number(last_).text(last_end_).bytes());
  }
}

void Roster::expire(Time now) {
  if (std::exchange(just_ended_, false)) last_ended_ = now;
  if (expected_ > 0 && now >= expected_until_) end("some of its workers did not come back");
}

Event::Worker Roster::worker(int64_t member) const {
  const Hello& hello = members_.at(member).hello;
  return {hello.host, hello.pid};
}

bool Roster::may_go(int64_t member) const {
  const Entry& entry = members_.at(member);
  return over_.has_value() || (entry.leaving && entry.rank < 0);
}

std::vector<Event::Worker> Roster::in_epoch() const {
  std::vector<Event::Worker> out;
  for (const int64_t member : in_order([](const Entry& e) { return e.rank >= 0; }))
    out.push_back(worker(member));
  return out;
}

std::string Roster::stale(int64_t member, int64_t number) const {
  if (number == 0) return "";
  const Entry& entry = members_.at(member);
  if (number == planned_ && (entry.rank >= 0 || entry.next_rank >= 0)) return "";
  if (number != current_) {
    return number == last_ ? last_end_
                           : fmt::format("epoch {} does not go on; the last is {}", number, last_);
  }
  return entry.rank < 0 ? fmt::format("this worker is not in epoch {}", number) : "";
}

void Roster::reply(int64_t member, int64_t request, const Error& error) {
  send_(member, Message(Kind::kReply)
                    .number(request)
                    .number(static_cast<int64_t>(error.code()))
                    .text(shortened(error.message(), kMostBytesOfReason))
                    .bytes());
}

// The values of a group may be longer together than a message may be.
void Roster::reply(int64_t member, int64_t request, std::string_view value) {
  if (value.size() + kReplyBytes > kMostBytes)
    return reply(member, request,
                 unsupported(fmt::format("an answer of {} bytes; a message has {} at most", value.size(),
                                         kMostBytes)));
  send_(member, Message(Kind::kReply).number(request).number(kReplyOk).text(value).take());
}

void Roster::set(int64_t member, int64_t request, int64_t number, const std::string& key,
                 std::string_view value) {
  if (const std::string why = stale(member, number); !why.empty())
    return reply(member, request, io_error(why));
  Values& values = values_[number];
  const Status done = values.set(key, std::string(value));
  if (!done.ok()) return reply(member, request, done.error());
  reply(member, request, "");
  for (const Answer& answer : values.take_answers(key))
    reply(answer.waiter.member, answer.waiter.request, answer.value);
}

void Roster::get(int64_t member, int64_t request, int64_t number, const std::string& key) {
  if (const std::string why = stale(member, number); !why.empty())
    return reply(member, request, io_error(why));
  Values& values = values_[number];
  if (const std::string* value = values.find(key)) return reply(member, request, *value);
  const Status waits = values.wait({member, request}, key);
  if (!waits.ok()) reply(member, request, waits.error());
}

void Roster::get_all(int64_t member, int64_t request, int64_t number, const std::string& group,
                     int64_t count) {
  if (const std::string why = stale(member, number); !why.empty())
    return reply(member, request, io_error(why));
  if (count < 0 || count > kMostKeys)
    return reply(member, request,
                 invalid_argument(fmt::format("{} keys of '{}'; {} is the most", count,
                                              shortened(group, kMostShown), kMostKeys)));
  Values& values = values_[number];
  if (const std::string* all = values.find_all(group, count)) return reply(member, request, *all);
  const Status waits = values.wait_all({member, request}, group, count);
  if (!waits.ok()) reply(member, request, waits.error());
}

void Roster::cancel(int64_t member, int64_t request) {
  for (auto& [number, values] : values_) values.cancel({member, request});
}

}  // namespace ostro::cluster
