// burst_peak, stream_peak: measure the limits of this machine, with which products and steps are compared:
// arithmetic on registers only, with the instruction that the kernel uses, and a stream through memory.
#pragma once

#include "ostro/machine/isa.h"
#include "ostro/machine/thread_pool.h"
#include "ostro/products/gemm.h"

namespace ostro::kernels {

// The clock of the benchmarks: the calling thread's CPU time when it works alone, else wall time.
double clock_seconds(int threads);

// Operations per second over all threads in a burst of about 100 us: TDPBF16PS for bf16 with AMX, VDPBF16PS
// for bf16 with AVX512-BF16, else FMA of the instruction set's width.
double burst_peak(machine::ThreadPool& pool, machine::Isa isa, GemmType type);

// Bytes a second of adding one array to another, of 128 MiB each: the best of some passes by wall time.
double stream_peak(machine::ThreadPool& pool);

}  // namespace ostro::kernels
