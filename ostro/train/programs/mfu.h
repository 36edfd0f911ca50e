// measure_peak, model_flops_utilization, resident_memory: how much of the machine a run uses. Its FLOP/s are
// compared with a measured peak; its memory is that of the process.
#pragma once

#include <cstdint>
#include <functional>

namespace ostro::train {

// The highest rate, in FLOP/s, that `work` reached. `work` does some floating-point operations and returns
// how many, for example one large matrix product with the kernels that training uses. It is run at least
// three times, and again until `seconds` have passed. The best run counts, not the mean: other programs on
// the machine make runs slower but do not change its peak.
double measure_peak(const std::function<double()>& work, double seconds = 0.1);

// Model FLOPs utilisation (MFU), 0 to 1: FLOPs per token, times tokens per second, divided by the peak.
// `flops_per_token` comes from the model's definition. Recomputation (rematerialisation) does not count,
// except that the attention scores which the backward pass computes again do. The result is 0 when one of the
// three values is not known (0).
double model_flops_utilization(double flops_per_token, double tokens_per_second, double peak_flops);

// Resident memory of this process in bytes: now, and its highest value so far. Both are 0 on a system without
// /proc.
struct ResidentMemory {
  int64_t now = 0;
  int64_t peak = 0;
};
ResidentMemory resident_memory();

}  // namespace ostro::train
