#include "ostro/train/step/leaf_progress.h"

#include <chrono>
#include <mutex>

namespace ostro::train {
namespace {

struct Shared {
  std::mutex mutex;
  LeafProgress progress;
  std::chrono::steady_clock::time_point begin;
};

Shared& shared() {
  static Shared shared;
  return shared;
}

}  // namespace

LeafProgress leaf_progress() {
  const std::lock_guard lock(shared().mutex);
  return shared().progress;
}

void begin_leaves(int64_t of) {
  const std::lock_guard lock(shared().mutex);
  shared().progress.done = 0;
  shared().progress.of = of;
  shared().begin = std::chrono::steady_clock::now();
}

void leaf_done() {
  const std::lock_guard lock(shared().mutex);
  LeafProgress& p = shared().progress;
  if (++p.done == 1 && p.first_seconds == 0)
    p.first_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - shared().begin).count();
}

}  // namespace ostro::train
