// How much of the machine a run uses: FLOPs against a measured peak, and memory.
#pragma once

#include <cstdint>
#include <functional>

namespace ostro::train {

// The best rate, in FLOP/s, that `work` reached. `work` does some floating-point operations (say, one large
// matrix product with the kernels that training uses) and returns how many; it is run at least three times
// and until `seconds` have passed. The best and not the mean: what else the machine does is no part of its
// peak.
double measure_peak(const std::function<double()>& work, double seconds = 0.1);

// Model FLOPs utilisation, 0 to 1: the FLOPs that the model's definition needs per token (recomputation does
// not count, but for the scores that attention's backward pass makes again) times tokens per second, over the
// peak. 0 when one of them is not known.
double model_flops_utilization(double flops_per_token, double tokens_per_second, double peak_flops);

// Bytes of this process in memory, now and at most so far; 0 where /proc does not tell.
struct ResidentMemory {
  int64_t now = 0;
  int64_t peak = 0;
};
ResidentMemory resident_memory();

}  // namespace ostro::train
