#include "ostro/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace ostro {

Status parallel_for(int64_t n, int threads, const std::function<Status(int64_t)>& f) {
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  int64_t failed_at = n;
  Status first;
  const auto work = [&] {
    while (!failed) {
      const int64_t i = next++;
      if (i >= n) return;
      const Status status = f(i);
      if (status.ok()) continue;
      failed = true;
      const std::lock_guard lock(mutex);
      if (i < failed_at) {
        failed_at = i;
        first = status;
      }
    }
  };
  std::vector<std::thread> helpers;
  for (int64_t t = 1; t < std::min<int64_t>(threads, n); ++t) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return first;
}

}  // namespace ostro
