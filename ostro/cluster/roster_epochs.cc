// chosen, begin: the choice of the members of the next epoch, and of the time when it begins.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/base/log.h"
#include "ostro/cluster/messages/message.h"
#include "ostro/cluster/roster.h"

namespace ostro::cluster {
namespace {

constexpr std::chrono::milliseconds kPatience{2000};  // for more workers, when there are enough for a start
constexpr std::chrono::milliseconds kReplacement{10'000};
constexpr std::chrono::milliseconds kJoinBatch{200};  // workers that come together are taken in together

}  // namespace

// A member that stays in the next epoch. One that is in the current epoch counts even if it has not reported
// ready.
bool Roster::stays(const Entry& entry) { return (entry.ready || entry.rank >= 0) && !entry.leaving; }

// Members in the order of their next ranks: first those of the current epoch by rank, then those of an
// earlier one by their rank there, then new ones by age.
Roster::Members Roster::in_order(const std::function<bool(const Entry&)>& which) const {
  std::vector<std::tuple<bool, bool, int64_t, int64_t>> places;
  for (const auto& [member, entry] : members_) {
    if (!which(entry)) continue;
    const int64_t rank = entry.rank >= 0 ? entry.rank : entry.was;
    places.emplace_back(entry.rank < 0, rank < 0, rank, member);
  }
  std::sort(places.begin(), places.end());
  Members out;
  for (const auto& place : places) out.push_back(std::get<3>(place));
  return out;
}

// Members without a slice that are to be measured are likely in that of their machine, or else in the one
// with the most members, in an epoch or not. Where that is so, the epoch need not end when they were
// measured.
Roster::Guesses Roster::guesses(const Members& members) const {
  std::map<std::string_view, int64_t> sizes;
  std::string largest;
  const Members all = in_order([](const Entry& e) { return !e.leaving; });
  for (const int64_t member : all)
    if (const std::string& slice = members_.at(member).hello.slice; !slice.empty()) ++sizes[slice];
  for (const int64_t member : all)
    if (const std::string& slice = members_.at(member).hello.slice; sizes[slice] > sizes[largest])
      largest = slice;
  Guesses out;
  for (const int64_t member : members) {
    const Hello& hello = members_.at(member).hello;
    if (!hello.slice.empty() || hello.machine.empty()) continue;
    const auto known = machines_.find(hello.machine);
    out[member] = known == machines_.end() ? largest : known->second.slice;
  }
  return out;
}

const std::string& Roster::slice_of(int64_t member, const Guesses& guesses) const {
  const auto guess = guesses.find(member);
  return guess == guesses.end() ? members_.at(member).hello.slice : guess->second;
}

// Puts members of one slice side by side, so that they have neighbouring leaves: slices in the order of their
// first members, and the members of each as they were. So the first member stays the first.
Roster::Members Roster::by_slice(const Members& members, const Guesses& guesses) const {
  std::vector<std::pair<std::string_view, Members>> slices;
  for (const int64_t member : members) {
    const std::string_view name = slice_of(member, guesses);
    auto slice = std::find_if(slices.begin(), slices.end(), [&](const auto& s) { return s.first == name; });
    if (slice == slices.end()) slice = slices.insert(slices.end(), {name, {}});
    slice->second.push_back(member);
  }
  Members out;
  for (const auto& [name, some] : slices) out.insert(out.end(), some.begin(), some.end());
  return out;
}

// The candidates that make the largest epoch whose slices have one size, in the same order; empty where the
// mesh gains nothing by such an epoch, or where too few are left for it.
Roster::Members Roster::in_equal_slices(const Members& candidates) const {
  if (sizes_.replicas == 0) return {};
  const Guesses guessed = guesses(candidates);
  std::map<std::string_view, int64_t> numbers;
  std::vector<Candidate> all;
  for (const int64_t member : candidates) {
    const Entry& entry = members_.at(member);
    const auto number = static_cast<int64_t>(numbers.size());
    const int64_t slice = numbers.try_emplace(slice_of(member, guessed), number).first->second;
    all.push_back({slice, current_ != 0 ? cells_of(sizes_, entry.rank, current_size_) : entry.cells});
  }
  Members out;
  for (const size_t place : equal_slices(all, sizes_)) out.push_back(candidates[place]);
  return static_cast<int64_t>(out.size()) < sizes_.least && !stops_ ? Members() : out;
}

bool Roster::are_equal_slices(const Members& members) const { return in_equal_slices(members) == members; }

// The candidates that make slices of one size, or else the first ones, as many as an epoch may have; empty if
// they are too few. A run that stops may be saved by fewer than could go on with it.
Roster::Members Roster::fitting(Members candidates) const {
  if (Members equal = in_equal_slices(candidates); !equal.empty()) return equal;
  int64_t size = std::min(sizes_.most, static_cast<int64_t>(candidates.size()));
  size -= size % sizes_.multiple;
  candidates.resize(static_cast<size_t>(size < sizes_.least && !stops_ ? 0 : size));
  return candidates;
}

// Three cases. An epoch is current: another is planned if a member leaves, or if it would be larger or have
// slices of one size for the first time; in the second case only after kJoinBatch, so that workers that join
// together are taken in together, and only when all members of the current one have begun it. None is
// current, and members have trained before: they begin as soon as all have confirmed the end. If some that
// may hold cells would be left out (the size must fit the multiple, or slices have one size), waits up to
// kReplacement for a replacement of the lost one.
// None is current, and all are new: begins with max_workers, or after kPatience with fewer.
Roster::Members Roster::chosen(Time now) const {
  if (over_ || planned_ != 0 || expected_ > 0) return {};
  const Members ready = in_order([](const Entry& e) { return e.ready && !e.leaving; });
  if (current_ != 0) {
    const Members now_in = in_order([](const Entry& e) { return e.rank >= 0; });
    // A member that still connects must not be asked to prepare another epoch.
    for (const int64_t member : now_in)
      if (!members_.at(member).works) return {};
    const bool leaver =
        std::any_of(now_in.begin(), now_in.end(), [&](int64_t m) { return members_.at(m).leaving; });
    const Members next = fitting(in_order(&stays));
    if (next == now_in) return {};
    if (leaver) return next;
    const bool better = next.size() > now_in.size() || (are_equal_slices(next) && !are_equal_slices(now_in));
    return better && now >= last_ready_ + kJoinBatch ? next : Members();
  }
  // A member that hangs and is not detected yet must not spoil the next epoch, and a slow one must not be
  // replaced by a spare.
  for (const auto& [member, entry] : members_)
    if (entry.end_not_seen != 0) return {};
  // Members that have trained continue at once; others join later.
  if (!ready.empty()) {
    Members next = fitting(ready);
    // A member that is left out may hold the only copy of some cells: it is better to wait for a replacement
    // of the lost one. Where it is known who holds cells, a spare without any is no reason to
    // wait.
    const auto holders = [&](const Members& members) {
      return std::count_if(members.begin(), members.end(), [&](int64_t member) {
        return sizes_.replicas == 0 || members_.at(member).cells >= 0;
      });
    };
    const bool leaves_out = holders(next) < holders(ready) && static_cast<int64_t>(next.size()) < sizes_.most;
    return leaves_out && (just_ended_ || now < last_ended_ + kReplacement) ? Members() : next;
  }
  const Members all = fitting(in_order([](const Entry& e) { return !e.leaving; }));
  const bool waits = static_cast<int64_t>(all.size()) < sizes_.most && now < last_added_ + kPatience;
  return waits ? Members() : all;
}

std::optional<Time> Roster::next_look(Time now) const {
  if (just_ended_) return now;
  std::optional<Time> look;
  for (const Time t :
       {last_added_ + kPatience, last_ready_ + kJoinBatch, last_ended_ + kReplacement, expected_until_})
    if (t > now && (!look || t < *look)) look = t;
  return look;
}

// `workers`: the fields of the epoch's size and of its workers, which are the same for all.
void Roster::tell_epoch(int64_t member, int64_t number, int64_t rank, const Message& workers) {
  send_(member, Message(Kind::kEpoch)
                    .number(number)
                    .number(rank)
                    .number(current_ == number ? 0 : 1)
                    .fields_of(workers)
                    .take());
}

// Gives out the next number and ranks 0, 1, ... in order. The epoch becomes current, or planned if one is
// current; members of the current epoch that are left out get rank -1.
void Roster::begin(Time now) {
  const Members next = chosen(now);
  const Guesses guessed = guesses(next);
  const Members members = by_slice(next, guessed);
  OSTRO_CHECK(!members.empty(), "an epoch begins before it can");
  const int64_t number = ++last_;
  restored_ = 0;
  const bool planned = current_ != 0;
  (planned ? planned_ : current_) = number;
  (planned ? planned_size_ : current_size_) = static_cast<int64_t>(members.size());
  const size_t waiting = in_order([](const Entry& e) { return e.ready && !e.leaving; }).size();
  log_info(fmt::format(
      "epoch {} {} with {} workers{}", number, planned ? "is planned" : "begins", members.size(),
      waiting > members.size() ? fmt::format("; {} more wait until they fit", waiting - members.size())
                               : ""));
  const Members before = in_order([](const Entry& e) { return e.rank >= 0; });
  Epoch epoch;
  epoch.rates = rates_;
  for (const int64_t m : members) {
    epoch.hosts.push_back(shortened(members_.at(m).hello.host, kMostBytesOfHost));
    epoch.slices.push_back(shortened(slice_of(m, guessed), kMostBytesOfHost));
    epoch.guessed.push_back(guessed.count(m) > 0);
  }
  Message workers(Kind::kEpoch);
  write_workers(epoch, workers);
  for (size_t i = 0; i < members.size(); ++i) {
    Entry& entry = members_.at(members[i]);
    (planned ? entry.next_rank : entry.rank) = static_cast<int64_t>(i);
    tell_epoch(members[i], number, static_cast<int64_t>(i), workers);
  }
  for (const int64_t member : before)
    if (members_.at(member).next_rank < 0) tell_epoch(member, number, -1, workers);
}

}  // namespace ostro::cluster
