// Span: profiling spans. A span says what a thread did, and when it began and ended.
//
// Spans are recorded only during a profile (`ostro train --profile`, docs/inside/profiling.md); otherwise a
// span costs one relaxed atomic load. A process has at most one profile at a time. Every thread records into
// a track of its own, so spans of one track are nested or separate; they never overlap partly. All functions
// are thread-safe; a Span belongs to the thread that made it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ostro {

// The description of spans. Made once and shared by all spans of the same kind.
struct SpanLabel {
  std::string name;  // "layers/mlp dot"
  // "step", "phase", "op", "kernel", "loop", "branch", "copy", "wait", "thread"
  const char* category = "phase";
  std::vector<std::pair<std::string, std::string>> details;  // name and value, for people
  double flops = 0, bytes = 0;                               // per span; 0: none, or not known
};
using SpanLabelPtr = std::shared_ptr<const SpanLabel>;

// One span that ended during the profile.
struct SpanRecord {
  SpanLabelPtr label;
  int64_t begin = 0, end = 0;  // ns of the steady clock
  int64_t leaf = -1;           // number of the leaf in the batch, from 0; -1: not part of a leaf
  int64_t iteration = -1;      // iteration of the innermost loop; -1: not in a loop
  bool part = false;           // this thread's share of a span that is recorded on another track
};

// The spans of one thread, or of several that had the same name one after another.
struct ProfileTrack {
  std::string thread;
  std::vector<SpanRecord> spans;  // in the order in which they ended
};

namespace profile_detail {
inline std::atomic<uint32_t> session{0};  // 0: no profile is running
}

// Returns true during a profile.
inline bool profiling() { return profile_detail::session.load(std::memory_order_relaxed) != 0; }

// Starts a profile: spans are recorded from now on. Returns false if one is already running.
bool start_profile();
// Stops the profile. Returns the tracks that have at least one span. Only spans that began and ended during
// the profile are recorded. Empty if no profile was running.
std::vector<ProfileTrack> stop_profile();

// Names this thread's track. Call it before the thread's first span.
void name_thread(std::string name);

// The present position of this thread: leaf, loop iteration and innermost span. New spans copy it. Not owned.
struct SpanPlace {
  int64_t leaf = -1, iteration = -1;
  const SpanLabelPtr* label = nullptr;  // label of the innermost span
};
SpanPlace& span_place();

// A span that lasts from construction to destruction. It is recorded only if a profile runs during all that
// time and `label` is not null. The label must outlive it.
class Span {
 public:
  explicit Span(const SpanLabelPtr* label);
  // A span for this thread's share of the span at another thread's `place`. Nothing is recorded if `place` is
  // null or has no span.
  static Span part_of(const SpanPlace* place) { return Span(place, 0); }
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  // Do not record this span.
  void discard() { session_ = 0; }

 private:
  Span(const SpanPlace* place, int);
  uint32_t session_ = 0;
  SpanRecord record_;
  const SpanLabelPtr* outer_ = nullptr;
};

// A span that is divided into phases without gaps, so the times of the phases add up to its own. At most one
// per thread at a time.
class PhasedSpan {
 public:
  // With an empty name nothing is recorded.
  explicit PhasedSpan(std::string name, std::vector<std::pair<std::string, std::string>> details = {});
  ~PhasedSpan();
  PhasedSpan(const PhasedSpan&) = delete;
  PhasedSpan& operator=(const PhasedSpan&) = delete;

 private:
  friend void begin_phase(const char* name, int64_t leaf);
  void end_phase(int64_t now);

  uint32_t session_ = 0;
  SpanRecord whole_, phase_;
};

// phase() without the test for a running profile.
void begin_phase(const char* name, int64_t leaf);
// Ends the current phase of this thread's PhasedSpan and begins the phase `name`, which works on `leaf`.
// Without a PhasedSpan it does nothing.
inline void phase(const char* name, int64_t leaf = -1) {
  if (profiling()) begin_phase(name, leaf);
}

}  // namespace ostro
