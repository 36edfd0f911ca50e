// Which instruction sets this process can run and which one it uses. All of them give the same bits
// (docs/numerics.md, N6 and N7), so the choice is one of speed alone.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::cpu {

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

// The fastest ISA by vendor that passes the start-up check (admission.h): AMX where present; AVX512-BF16 on
// AMD only, because elsewhere VDPBF16PS runs at a quarter of the FMA rate and emulation on plain AVX-512 is
// faster.
Isa best_isa();

// The ISA named `requested`, or the best one when it is empty. Error: an unknown name, or an ISA that this
// machine lacks or that fails the start-up check.
Result<Isa> choose_isa(std::string_view requested);

// choose_isa of the environment variable OSTRO_ISA.
Result<Isa> choose_isa();

}  // namespace ostro::cpu
