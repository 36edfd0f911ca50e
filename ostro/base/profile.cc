#include "ostro/base/profile.h"

#include <chrono>
#include <mutex>

#include "ostro/base/check.h"

namespace ostro {
namespace {

using profile_detail::session;

struct Track {
  std::mutex mutex;  // guards spans
  ProfileTrack content;
  bool taken = true;  // a live thread uses it; guarded by the registry's mutex
};

struct Registry {
  std::mutex mutex;
  uint32_t sessions = 0;
  std::vector<std::unique_ptr<Track>> tracks;
};

// Never destroyed: a thread may end after static variables are gone.
Registry& registry() {
  static auto* const r = new Registry;
  return *r;
}

struct ThreadState {
  std::string name = "thread";
  Track* track = nullptr;
  SpanPlace place;
  PhasedSpan* phased = nullptr;

  ~ThreadState() {
    if (track == nullptr) return;
    const std::lock_guard<std::mutex> lock(registry().mutex);
    track->taken = false;
  }
};

ThreadState& state() {
  static thread_local ThreadState s;
  return s;
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The track of a thread. A new thread reuses the track of an ended thread with the same name. Example: the
// worker threads of the next step.
Track& track_of(ThreadState& thread) {
  if (thread.track != nullptr) return *thread.track;
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  for (auto& track : r.tracks)
    if (!track->taken && track->content.thread == thread.name) thread.track = track.get();
  if (thread.track == nullptr) {
    r.tracks.push_back(std::make_unique<Track>());
    thread.track = r.tracks.back().get();
    thread.track->content.thread = thread.name;
  }
  thread.track->taken = true;
  return *thread.track;
}

void keep(uint32_t begun_in, SpanRecord record) {
  Track& track = track_of(state());
  const std::lock_guard<std::mutex> lock(track.mutex);
  // Check under the lock: stop_profile() may have emptied this track meanwhile.
  if (session.load(std::memory_order_relaxed) == begun_in) track.content.spans.push_back(std::move(record));
}

SpanLabelPtr make_label(std::string name, const char* category,
                        std::vector<std::pair<std::string, std::string>> details = {}) {
  auto label = std::make_shared<SpanLabel>();
  label->name = std::move(name);
  label->category = category;
  label->details = std::move(details);
  return label;
}

}  // namespace

bool start_profile() {
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (profiling()) return false;
  session.store(++r.sessions, std::memory_order_relaxed);
  return true;
}

std::vector<ProfileTrack> stop_profile() {
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  session.store(0, std::memory_order_relaxed);
  std::vector<ProfileTrack> out;
  for (auto& track : r.tracks) {
    const std::lock_guard<std::mutex> track_lock(track->mutex);
    if (track->content.spans.empty()) continue;
    out.push_back({track->content.thread, std::move(track->content.spans)});
    track->content.spans.clear();
  }
  return out;
}

void name_thread(std::string name) { state().name = std::move(name); }

SpanPlace& span_place() { return state().place; }

Span::Span(const SpanLabelPtr* label) {
  if (!profiling() || label == nullptr || *label == nullptr) return;
  session_ = session.load(std::memory_order_relaxed);
  SpanPlace& place = span_place();
  outer_ = std::exchange(place.label, label);
  record_ = {*label, now_ns(), 0, place.leaf, place.iteration, false};
}

Span::Span(const SpanPlace* place, int) {
  if (!profiling() || place == nullptr || place->label == nullptr) return;
  session_ = session.load(std::memory_order_relaxed);
  record_ = {*place->label, now_ns(), 0, place->leaf, place->iteration, true};
}

Span::~Span() {
  if (record_.label == nullptr) return;
  if (!record_.part) span_place().label = outer_;
  if (session_ == 0) return;
  record_.end = now_ns();
  keep(session_, std::move(record_));
}

PhasedSpan::PhasedSpan(std::string name, std::vector<std::pair<std::string, std::string>> details) {
  if (!profiling() || name.empty()) return;
  OSTRO_CHECK(state().phased == nullptr, "a phased span \"{}\" inside another", name);
  session_ = session.load(std::memory_order_relaxed);
  state().phased = this;
  whole_ = {make_label(std::move(name), "step", std::move(details)), now_ns(), 0};
}

PhasedSpan::~PhasedSpan() {
  if (session_ == 0) return;
  whole_.end = now_ns();
  end_phase(whole_.end);
  keep(session_, std::move(whole_));
  state().phased = nullptr;
}

void PhasedSpan::end_phase(int64_t now) {
  span_place().leaf = -1;
  if (phase_.label == nullptr) return;
  phase_.end = now;
  keep(session_, std::exchange(phase_, SpanRecord()));
}

void begin_phase(const char* name, int64_t leaf) {
  PhasedSpan* span = state().phased;
  if (span == nullptr) return;
  // The first phase begins at the same time as its span.
  const int64_t now = span->phase_.label == nullptr ? span->whole_.begin : now_ns();
  span->end_phase(now);
  span->phase_ = {make_label(name, "phase"), now, 0, leaf};
  span_place().leaf = leaf;
}

}  // namespace ostro
