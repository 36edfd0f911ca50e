#include "ostro/train/programs/mfu.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

namespace ostro::train {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

double measure_peak(const std::function<double()>& work, double seconds) {
  constexpr int kLeastRuns = 3;
  double best = 0;
  const double begin = now();
  for (int run = 0; run < kLeastRuns || now() - begin < seconds; ++run) {
    const double start = now(), flops = work(), elapsed = now() - start;
    if (elapsed > 0) best = std::max(best, flops / elapsed);
  }
  return best;
}

double model_flops_utilization(double flops_per_token, double tokens_per_second, double peak_flops) {
  if (!(flops_per_token > 0 && tokens_per_second > 0 && peak_flops > 0)) return 0;
  return flops_per_token * tokens_per_second / peak_flops;
}

ResidentMemory resident_memory() {
  ResidentMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    constexpr int64_t kKiB = 1024;
    if (line.starts_with("VmRSS:")) memory.now = std::atoll(line.c_str() + 6) * kKiB;
    if (line.starts_with("VmHWM:")) memory.peak = std::atoll(line.c_str() + 6) * kKiB;
  }
  memory.peak = std::max(memory.peak, memory.now);
  return memory;
}

}  // namespace ostro::train
