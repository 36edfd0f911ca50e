// JobWatch: the coordinator's record of a job, for people: the members, their progress, the events. It
// decides nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/cluster/watch/progress.h"
#include "ostro/cluster/watch/stragglers.h"

namespace ostro::cluster {

inline constexpr size_t kMostJobEvents = 100;  // that are kept
// Begins what a worker says whose machine is about to be taken away; the reason follows.
inline constexpr std::string_view kNoticeWord = "notice: ";
// Begins what a worker says that the others have named, because it computes what they do not.
inline constexpr std::string_view kCorruptWord = "corrupt: ";
// Begins what the leader says of leaves that are shared out anew; the worker goes on.
inline constexpr std::string_view kSharesWord = "shares: ";

// One member. Times are Unix times in seconds.
struct MemberState {
  int64_t member = 0;  // number by order of joining
  int64_t rank = -1;   // in the current epoch; -1: not in it
  std::string host;
  int64_t pid = 0;
  double joined = 0, heard = 0;  // Unix time in seconds: of joining, of the last report
  Progress progress;
  double slowness = 0;  // its time for a leaf, divided by the median of all; 0: not known
  bool straggles = false;
};

struct JobEvent {
  double time = 0;  // Unix time in seconds
  // "joined", "notice" (its machine is about to be taken away), "error" (of a worker, which ends), "corrupt"
  // (of a worker whose results differ from those of the others, and which ends), "shares" (leaves are shared
  // out anew), "slices" (they were found by measuring), "left", "lost", "straggler", "epoch", "end", "over"
  std::string kind;
  std::string text;
};

// A copy of the record at one moment.
struct JobState {
  std::string job;
  double started = 0, written = 0;  // Unix time in seconds: of the coordinator, of this state
  std::string host;                 // of the coordinator
  int64_t pid = 0;
  int64_t epoch = 0;                 // number of the last
  bool goes_on = false;              // whether it has not ended
  std::string mesh;                  // of the current epoch; "": not known
  std::vector<MemberState> members;  // by rank; those without one at the end
  std::vector<JobEvent> events;      // the last hundred
  // Since the coordinator began; not in cluster.json. event_count: of all events, also those that are gone.
  int64_t event_count = 0, joined_count = 0, left_count = 0, lost_count = 0;
  // Set by the coordinator: of all messages between it and members; of workers that it relays between, and
  // how many pairs of them there are now.
  int64_t control_bytes = 0, relayed_bytes = 0, relayed_pairs = 0;

  int64_t size() const;  // of the current epoch
};

// Thread-safe.
class JobWatch {
 public:
  JobWatch();
  void joined(int64_t member, const std::string& job, std::string_view host, int64_t pid);
  // `why` is the reason of the loss; "": the member left as expected.
  void gone(int64_t member, std::string_view why);
  void report(int64_t member, const Progress& progress);
  // A member says why it is about to end or to leave, or tells of shares.
  void says(int64_t member, std::string_view why);
  // Sets the state of epochs: the number of the last one, the number of the current one (0: none), each
  // member's rank in it, and the reason for the end of the last one.
  void look(int64_t last, int64_t current, const std::function<int64_t(int64_t member)>& rank,
            const std::string& why_ended);
  // Adds an event that is not about one member. After "over" no epoch goes on.
  void happened(const std::string& kind, std::string_view text);

  // A copy of the state, with members by rank.
  JobState state() const;
  // Grows with every event.
  int64_t events() const;
  // Grows when a worker's report shows a later step.
  int64_t steps_done() const;

 private:
  void add(const std::string& kind, std::string text);

  mutable std::mutex mutex_;
  JobState state_;  // its events are events_
  std::map<int64_t, MemberState> members_;
  std::deque<JobEvent> events_;
  int64_t count_ = 0, steps_done_ = 0;
  int64_t current_ = 0;
  bool over_ = false;
  Stragglers stragglers_;
};

}  // namespace ostro::cluster
