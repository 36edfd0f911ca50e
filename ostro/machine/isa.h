// Isa: the instruction sets that kernels are built for, and which of them this process can run.
//
// All of them give the same bits (docs/spec/numerics.md, N6 and N7). The functions are thread-safe.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace ostro::machine {

// Ascending: every later one can also run the kernels of those before it.
enum class Isa {
  kGeneric,     // intrinsic-free C++ built for x86-64-v3
  kAvx2,        // AVX2 + FMA
  kAvx512,      // AVX-512 F, BW, CD, DQ, VL; bf16 products emulated with f32 FMA
  kAvx512Bf16,  // VDPBF16PS and VCVTNEPS2BF16
  kAmx,         // TDPBF16PS tiles; f32 uses the AVX-512 kernel
};
inline constexpr Isa kAllIsas[] = {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx};

// "generic", "avx2", "avx512", "avx512bf16", "amx".
const char* isa_name(Isa isa);
std::optional<Isa> parse_isa(std::string_view name);

// True when the CPU has it, the operating system saves its registers and, for AMX, the kernel has granted
// this process the tile data (asked for at the first call).
bool has_isa(Isa isa);

// The ISAs this process can run, ascending.
std::vector<Isa> available_isas();

}  // namespace ostro::machine
