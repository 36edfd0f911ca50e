// Bursts of a kernel's own instruction on registers alone: the peak that a product is compared with.
#pragma once

#include "ostro/cpu/gemm.h"
#include "ostro/cpu/isa.h"
#include "ostro/cpu/thread_pool.h"

namespace ostro::bench {

// The clock of the benchmarks: the calling thread's CPU time when it works alone, else wall time.
double seconds(int threads);

// Operations per second over all threads in a burst of about 100 us: TDPBF16PS for bf16 with AMX, VDPBF16PS
// for bf16 with AVX512-BF16, else FMA of the instruction set's width.
double burst_peak(cpu::ThreadPool& pool, cpu::Isa isa, cpu::GemmType type);

}  // namespace ostro::bench
