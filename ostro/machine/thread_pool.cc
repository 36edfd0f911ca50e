#include "ostro/machine/thread_pool.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "ostro/base/wait_label.h"
#include "ostro/machine/affinity.h"

namespace ostro::machine {
namespace {

constexpr uint32_t kClosed = 0x80000000u;
constexpr unsigned kMxcsr = 0x9fc0;  // nearest even, FTZ, DAZ, all exceptions masked
// On a virtual machine it takes tens of microseconds to wake a sleeping thread, as long as a small step of a
// plan. So a thread spins for a while before it sleeps. It yields every 10 to 20 us, so that other processes
// do not wait longer.
constexpr auto kPatience = std::chrono::milliseconds(2);
constexpr int kSpins = 400;

thread_local bool inside_job = false;

// Waits until `word` differs from `old` and returns its value. It spins and yields for kPatience, then
// sleeps.
uint32_t wait_change(const std::atomic<uint32_t>& word, uint32_t old) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int i = 0; i < kSpins; ++i) {
      const uint32_t now = word.load(std::memory_order_acquire);
      if (now != old) return now;
      _mm_pause();
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

// Sets N0's floating-point environment and puts the caller's back.
class JobScope {
 public:
  JobScope() : mxcsr_(_mm_getcsr()), inside_(inside_job) {
    _mm_setcsr(kMxcsr);
    inside_job = true;
  }
  ~JobScope() {
    _mm_setcsr(mxcsr_);
    inside_job = inside_;
  }
  JobScope(const JobScope&) = delete;
  JobScope& operator=(const JobScope&) = delete;

 private:
  unsigned mxcsr_;
  bool inside_;
};

}  // namespace

ThreadPool::ThreadPool(int threads, std::vector<int> cpus) : cpus_(std::move(cpus)), state_(kClosed) {
  OSTRO_CHECK(threads >= 1, "a thread pool of {} threads", threads);
  workers_.reserve(threads - 1);
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { serve(i); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

int64_t ThreadPool::work() {
  for (int64_t done = 0;; ++done) {
    const int64_t tile = next_.fetch_add(1, std::memory_order_relaxed);
    if (tile >= count_) return done;
    (*job_)(tile);
  }
}

void ThreadPool::serve(int number) {
  name_thread(fmt::format("pool thread {}", number));
  if (!cpus_.empty()) bind_this_thread(cpus_[static_cast<size_t>(number) % cpus_.size()]);
  uint32_t seen = 0;
  for (;;) {
    seen = wait_change(epoch_, seen);
    if (stop_.load(std::memory_order_acquire)) return;
    uint32_t state = state_.load(std::memory_order_acquire);
    while ((state & kClosed) == 0) {
      if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) continue;
      {
        JobScope scope;  // at every job: foreign code may have changed the environment since the last one
        Span part = Span::part_of(&place_);
        if (work() == 0) part.discard();
      }
      if (state_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | 1)) state_.notify_one();
      break;
    }
  }
}

void ThreadPool::run_tiles(int64_t count, FunctionRef<void(int64_t)> fn) {
  if (count <= 0) return;
  if (inside_job || workers_.empty() || count == 1) {
    JobScope scope;
    for (int64_t tile = 0; tile < count; ++tile) fn(tile);
    return;
  }
  std::lock_guard<std::mutex> turn(callers_);
  job_ = &fn;
  count_ = count;
  place_ = profiling() ? span_place() : SpanPlace();
  next_.store(0, std::memory_order_relaxed);
  state_.store(0, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  {
    JobScope scope;
    work();
  }
  uint32_t state = state_.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed;
  if (state == kClosed) return;
  const Span waiting(profiling() ? &wait_label(Wait::kThreads) : nullptr);
  while (state != kClosed) state = wait_change(state_, state);
}

void ThreadPool::parallel_for(int64_t count, FunctionRef<void(int64_t, int64_t)> fn, int64_t grain) {
  if (count <= 0) return;
  grain = std::max<int64_t>(1, grain);
  const int64_t ranges = std::min<int64_t>(threads(), (count + grain - 1) / grain);
  run_tiles(ranges, [&](int64_t i) {
    // Ranges are multiples of `grain`; only the last one may end inside a unit.
    const int64_t units = (count + grain - 1) / grain;
    const int64_t begin = units * i / ranges * grain;
    const int64_t end = std::min(count, units * (i + 1) / ranges * grain);
    if (begin < end) fn(begin, end);
  });
}

}  // namespace ostro::machine
