#include "ostro/engines/machine_limits.h"

#include <algorithm>

#include "ostro/base/machine.h"
#include "ostro/cpu/products/calibrate.h"
#include "ostro/cpu/products/choose_isa.h"

namespace ostro::engines {

Result<compile::MachineLimits> machine_limits() {
  ASSIGN_OR_RETURN(const cpu::Isa isa, cpu::choose_isa());
  ASSIGN_OR_RETURN(const int threads, default_threads());
  cpu::ThreadPool pool(threads);
  compile::MachineLimits limits;
  for (int i = 0; i < 20; ++i) {
    limits.f32_flops = std::max(limits.f32_flops, cpu::burst_peak(pool, isa, cpu::GemmType::kF32));
    limits.bf16_flops = std::max(limits.bf16_flops, cpu::burst_peak(pool, isa, cpu::GemmType::kBf16));
  }
  limits.bytes = cpu::stream_peak(pool);
  return limits;
}

}  // namespace ostro::engines
