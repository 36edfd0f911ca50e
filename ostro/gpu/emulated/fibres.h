// Fibres: the threads of one emulated block, which run one at a time, each to its next barrier or shuffle.
//
// One thread of the host at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ostro::gpu {

// The interface that device text calls (cuda/text/head.cu has the same struct).
struct OstroBlock {
  unsigned thread = 0, threads = 0;
  long long x = 0, y = 0, z = 0;
  void* dynamic = nullptr;
  void (*barrier)(int line) = nullptr;
  void* (*shared)(const void* key, unsigned long long bytes) = nullptr;
  const unsigned long long* (*exchange)(const unsigned long long* given, int count) = nullptr;
  void (*pause)(int line) = nullptr;
  void (*fail)(const char* why) = nullptr;
  unsigned long long number = 0, events = 0;
  unsigned char* base = nullptr;
};

class Fibres {
 public:
  // `seed` decides the order in which threads run.
  explicit Fibres(uint64_t seed) : drawn_(seed * 2 + 1) {}
  ~Fibres();

  // Runs body() once for each thread of the block, with block.thread set to its number. Returns the fault of
  // the threads, or "". After a fault, threads that wait never go on.
  std::string run(OstroBlock& block, const std::function<void()>& body);

  // For the thread that runs now: waits for all threads of the block, at the barrier of this line.
  void barrier(int line);
  // Gives `count` numbers to the warp, at most kMostGiven. Returns what its 32 threads gave, thread after
  // thread, until the next exchange of this warp.
  const unsigned long long* exchange(const unsigned long long* given, int count);
  static constexpr int kMostGiven = 6;
  // Lets other threads run, until they all wait or pause. It is a fault when none can go on and block.events
  // has not grown since they paused before.
  void pause(int line);

  uint64_t next();  // a random number

 private:
  enum class State { kReady, kAtBarrier, kAtExchange, kPaused, kDone };
  struct Fibre {
    std::byte* stack = nullptr;
    void* pointer = nullptr;  // of its stack, while it does not run
    State state = State::kDone;
    int line = 0;
    unsigned long long given[kMostGiven] = {};
    int count = 0;
  };
  static void enter(Fibres* self);
  void wait(State state);
  std::string release();
  std::string where(size_t thread) const;

  std::vector<Fibre> fibres_;
  std::vector<unsigned long long> exchanged_;  // 32 * kMostGiven for each warp
  void* scheduler_ = nullptr;
  OstroBlock* block_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  size_t running_ = 0;
  uint64_t drawn_;
  unsigned long long seen_events_ = 0;  // when paused threads went on last
};

}  // namespace ostro::gpu
