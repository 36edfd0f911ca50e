#include "ostro/cluster/watch/job_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "ostro/base/host_name.h"
#include "ostro/base/log.h"

namespace ostro::cluster {
namespace {

constexpr size_t kMostEvents = kMostJobEvents;
constexpr size_t kMostKept = 500;  // bytes of a text that came from a worker

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string where(const MemberState& m) {
  const std::string place = fmt::format("{} (pid {})", m.host, m.pid);
  return m.rank < 0 ? fmt::format("a worker on {}", place) : fmt::format("worker {} on {}", m.rank, place);
}

}  // namespace

int64_t JobState::size() const {
  return std::count_if(members.begin(), members.end(), [](const MemberState& m) { return m.rank >= 0; });
}

JobWatch::JobWatch() {
  state_.host = host_name();
  state_.pid = ::getpid();
  state_.started = unix_time();
}

void JobWatch::add(const std::string& kind, std::string text) {
  if (events_.size() == kMostEvents) events_.pop_front();
  events_.push_back({unix_time(), kind, std::move(text)});
  ++count_;
}

void JobWatch::joined(int64_t member, const std::string& job, std::string_view host, int64_t pid) {
  const std::lock_guard lock(mutex_);
  state_.job = job.substr(0, kMostKept);
  MemberState& m = members_[member];
  m.member = member;
  m.host = host.substr(0, kMostKept);
  m.pid = pid;
  m.joined = m.heard = unix_time();
  m.progress.phase = "start";
  ++state_.joined_count;
  add("joined", where(m));
}

void JobWatch::says(int64_t member, std::string_view why) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(member);
  if (found == members_.end()) return;
  if (why.starts_with(kSharesWord))
    return add("shares", std::string(why.substr(kSharesWord.size(), kMostKept)));
  std::string kind = "error";
  for (const auto& [word, named] : {std::pair{kNoticeWord, "notice"}, {kCorruptWord, "corrupt"}})
    if (why.starts_with(word)) {
      why.remove_prefix(word.size());
      kind = named;
      break;
    }
  add(kind, fmt::format("{}: {}", where(found->second), why.substr(0, kMostKept)));
}

void JobWatch::gone(int64_t member, std::string_view why) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(member);
  if (found == members_.end()) return;
  const Progress& last = found->second.progress;
  ++(why.empty() ? state_.left_count : state_.lost_count);
  if (why.empty())
    add("left", where(found->second));
  else
    add("lost", fmt::format("{}: {}; its last word was {} of step {}", where(found->second),
                            why.substr(0, kMostKept), last.phase, last.step));
  members_.erase(found);
  stragglers_.remove(member);
}

void JobWatch::report(int64_t member, const Progress& progress) {
  std::string straggler;
  {
    const std::lock_guard lock(mutex_);
    const auto found = members_.find(member);
    if (found == members_.end()) return;
    MemberState& m = found->second;
    // The first step that it reports may be one that it never finishes.
    if (m.progress.step > 0 && progress.step > m.progress.step) ++steps_done_;
    m.progress = progress;
    m.heard = unix_time();
    if (m.rank >= 0 && progress.epoch == current_ && stragglers_.report(member, progress)) {
      straggler = fmt::format(
          "{} straggles: it computes {:.1f} times as long for a leaf as the median worker, since "
          "20 steps",
          where(m), stragglers_.ratio(member));
      add("straggler", straggler);
    }
  }
  if (!straggler.empty()) log_warning(straggler);
}

// Called after every turn of the coordinator: adds events only for changes against the state of the last
// call.
void JobWatch::look(int64_t last, int64_t current, const std::function<int64_t(int64_t member)>& rank,
                    const std::string& why_ended) {
  const std::lock_guard lock(mutex_);
  // Before the ranks are gone.
  if (current_ != 0 && current != current_ && current == 0)
    add("end", fmt::format("epoch {} ended: {}", current_, why_ended.substr(0, kMostKept)));
  int64_t size = 0;
  for (auto& [member, m] : members_) {
    m.rank = current == 0 ? -1 : rank(member);
    size += m.rank >= 0 ? 1 : 0;
  }
  state_.epoch = last;
  state_.goes_on = current != 0;
  const int64_t before = std::exchange(current_, current);
  if (current == before || current == 0) return;
  stragglers_.restart();
  add("epoch", fmt::format("epoch {} begins with {} workers", current, size));
}

void JobWatch::happened(const std::string& kind, std::string_view text) {
  const std::lock_guard lock(mutex_);
  over_ = over_ || kind == "over";
  add(kind, std::string(text.substr(0, kMostKept)));
}

JobState JobWatch::state() const {
  const std::lock_guard lock(mutex_);
  JobState out = state_;
  out.written = unix_time();
  out.goes_on = state_.goes_on && !over_;
  out.event_count = count_;
  for (const auto& [member, m] : members_) {
    out.members.push_back(m);
    out.members.back().slowness = stragglers_.ratio(member);
    out.members.back().straggles = stragglers_.straggles(member);
  }
  const auto place = [](const MemberState& m) {
    return std::pair(m.rank < 0, m.rank < 0 ? m.member : m.rank);
  };
  std::sort(out.members.begin(), out.members.end(),
            [&](const MemberState& a, const MemberState& b) { return place(a) < place(b); });
  out.events.assign(events_.begin(), events_.end());
  return out;
}

int64_t JobWatch::events() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

int64_t JobWatch::steps_done() const {
  const std::lock_guard lock(mutex_);
  return steps_done_;
}

}  // namespace ostro::cluster
