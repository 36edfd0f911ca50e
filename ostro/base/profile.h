// Spans: what a thread did, from when to when. Collected only while somebody profiles
// (`ostro train --profile`, docs/profiling.md); else each costs one relaxed load.
//
// There is one profile at a time in a process. Every thread collects in a track of its own, so that spans on
// one track nest and never overlap otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ostro {

// What spans are about; made once, shared by all of them.
struct SpanLabel {
  std::string name;  // "layers/mlp dot"
  const char* category =
      "phase";  // "step", "phase", "op", "kernel", "loop", "branch", "copy", "wait", "thread"
  std::vector<std::pair<std::string, std::string>> details;  // name and value, for people
  double flops = 0, bytes = 0;                               // of one span; 0: none or not known
};
using SpanLabelPtr = std::shared_ptr<const SpanLabel>;

struct SpanRecord {
  SpanLabelPtr label;
  int64_t begin = 0, end = 0;  // ns of the steady clock
  int64_t leaf = -1;           // of the batch, from 0; -1: the work of no leaf
  int64_t iteration = -1;      // of the innermost loop; -1: outside of loops
  bool part = false;           // one thread's share of the span of this label on another track
};

struct ProfileTrack {
  std::string thread;
  std::vector<SpanRecord> spans;  // in the order in which they ended
};

namespace profile_detail {
inline std::atomic<uint32_t> session{0};  // 0: nobody profiles
}

inline bool profiling() { return profile_detail::session.load(std::memory_order_relaxed) != 0; }

// From here on spans are collected: false when a profile is on already.
bool start_profile();
// Ends it: the tracks on which a span began and ended since. Empty when none was on.
std::vector<ProfileTrack> stop_profile();

// How this thread's track is called; before its first span.
void name_thread(std::string name);

// Where this thread is; spans that begin take it over. Not owned.
struct SpanPlace {
  int64_t leaf = -1, iteration = -1;
  const SpanLabelPtr* label = nullptr;  // of the innermost span
};
SpanPlace& span_place();

// From its construction to its destruction, when a profile is on all the time and there is a label, which
// must outlive it.
class Span {
 public:
  explicit Span(const SpanLabelPtr* label);
  // This thread's share of what another thread's place names; nothing without one.
  static Span part_of(const SpanPlace* place) { return Span(place, 0); }
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  // Nothing worth a record happened.
  void discard() { session_ = 0; }

 private:
  Span(const SpanPlace* place, int);
  uint32_t session_ = 0;
  SpanRecord record_;
  const SpanLabelPtr* outer_ = nullptr;
};

// A span that its phases fill without gaps, so that their times add up to its own. One at a time on a thread.
class PhasedSpan {
 public:
  // An empty name: nothing.
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

void begin_phase(const char* name, int64_t leaf);
// This thread's PhasedSpan ends the phase it was in and goes on in this one, which works on that leaf.
// Without a PhasedSpan: nothing.
inline void phase(const char* name, int64_t leaf = -1) {
  if (profiling()) begin_phase(name, leaf);
}

}  // namespace ostro
