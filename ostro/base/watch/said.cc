#include "ostro/base/watch/said.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace ostro {
namespace {

struct Said {
  std::atomic<bool> keeps = false;
  std::mutex mutex;
  std::string bytes;
  size_t left_out = 0;
};

// Never destroyed: threads may log while the process ends.
Said& said() {
  static Said& only = *new Said;
  return only;
}

}  // namespace

void keep_said() { said().keeps = true; }

void add_said(std::string_view bytes) {
  Said& kept = said();
  if (!kept.keeps) return;
  const std::lock_guard lock(kept.mutex);
  kept.bytes += bytes;
  if (kept.bytes.size() <= kMostSaid) return;
  // Half of it, so that not every line moves all bytes.
  const size_t gone = kept.bytes.size() - kMostSaid / 2;
  kept.left_out += gone;
  kept.bytes.erase(0, gone);
}

std::string take_said(size_t most) {
  Said& kept = said();
  const std::lock_guard lock(kept.mutex);
  std::string out;
  if (const size_t gone = std::exchange(kept.left_out, 0); gone > 0)
    out = fmt::format("\n({} bytes left out)\n", gone);
  const size_t count = std::min(most, kept.bytes.size());
  out.append(kept.bytes, 0, count);
  kept.bytes.erase(0, count);
  return out;
}

}  // namespace ostro
