// tc16_kernel: the kernel of products by the rule of tensor cores (docs/spec/numerics.md, N23) for an
// instruction set, after the start-up check of N23.8. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/machine/isa.h"

namespace ostro::kernels {

struct GemmKernel;

// The kernel that runs on `isa`, which must be available. One that differs from the definition is logged at
// its first use, and the plain one taken.
const GemmKernel& tc16_kernel(machine::Isa isa);

// All kernels that this machine can run.
std::vector<const GemmKernel*> tc16_kernels();

// Operands of one kind of numbers: a [m][k] and b [k][n], bits of bf16. Kinds: ordinary, of wide exponents,
// pairs that nearly cancel, results around 2^-149 and 2^-126, denormals, near overflow, zeros beside large
// factors, all bit patterns. `state` goes on from one draw to the next.
struct Tc16Operands {
  std::vector<uint16_t> a, b;
};
inline constexpr int kTc16Kinds = 8;
Tc16Operands draw_tc16(int kind, int64_t m, int64_t k, int64_t n, uint64_t& state);

// The first output of a tile of the kernel over `k` products of this kind that differs from the definition,
// or an empty text. The tile is made in one call and in two.
std::string tc16_difference(const GemmKernel& kernel, int64_t k, int kind, uint64_t seed);

}  // namespace ostro::kernels
