#include "ostro/cpu/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ostro/cpu/admission.h"

namespace ostro::cpu {
namespace {

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

bool bit(uint32_t word, int index) { return (word >> index & 1) != 0; }

// The state components that the operating system saves (XCR0); zero without OSXSAVE.
uint64_t enabled_state() {
  if (!bit(cpuid(1, 0).c, 27)) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Linux hands out the 8 KiB of tile registers per process and only on request.
bool request_tile_data() {
  constexpr int kArchReqXcompPerm = 0x1023;
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kTileData) == 0;
}

struct Machine {
  bool has[std::size(kAllIsas)] = {};
  bool amd = false;
};

Machine detect() {
  constexpr uint64_t kYmmState = 0x6, kZmmState = 0xe6, kTileState = 0x60000;
  const uint64_t state = enabled_state();
  const Registers one = cpuid(1, 0), seven = cpuid(7, 0), seven_one = cpuid(7, 1), vendor = cpuid(0, 0);
  const bool fma = bit(one.c, 12), f16c = bit(one.c, 29), avx2 = bit(seven.b, 5);
  const bool avx512 = bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 28) && bit(seven.b, 30) &&
                      bit(seven.b, 31);  // F, DQ, CD, BW, VL
  Machine m;
  const auto set = [&m](Isa isa, bool value) { m.has[static_cast<int>(isa)] = value; };
  const auto get = [&m](Isa isa) { return m.has[static_cast<int>(isa)]; };
  set(Isa::kGeneric, true);  // the whole program is built for x86-64-v3
  set(Isa::kAvx2, avx2 && fma && f16c && (state & kYmmState) == kYmmState);
  set(Isa::kAvx512, get(Isa::kAvx2) && avx512 && (state & kZmmState) == kZmmState);
  set(Isa::kAvx512Bf16, get(Isa::kAvx512) && bit(seven_one.a, 5));
  set(Isa::kAmx, get(Isa::kAvx512Bf16) && bit(seven.d, 22) && bit(seven.d, 24) &&
                     (state & kTileState) == kTileState && request_tile_data());
  char name[12];
  std::memcpy(name, &vendor.b, 4);
  std::memcpy(name + 4, &vendor.d, 4);
  std::memcpy(name + 8, &vendor.c, 4);
  m.amd = std::string_view(name, 12) == "AuthenticAMD";
  return m;
}

const Machine& machine() {
  static const Machine m = detect();
  return m;
}

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
      return "generic";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512bf16";
    case Isa::kAmx:
      return "amx";
  }
  return "unknown";
}

std::optional<Isa> parse_isa(std::string_view name) {
  for (Isa isa : kAllIsas)
    if (name == isa_name(isa)) return isa;
  return std::nullopt;
}

bool has_isa(Isa isa) { return machine().has[static_cast<int>(isa)]; }

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (Isa isa : kAllIsas)
    if (has_isa(isa)) isas.push_back(isa);
  return isas;
}

Isa best_isa() {
  for (Isa isa : {Isa::kAmx, Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvx2}) {
    if (isa == Isa::kAvx512Bf16 && !machine().amd) continue;
    if (has_isa(isa) && bf16_admitted(isa)) return isa;
  }
  return Isa::kGeneric;
}

Result<Isa> choose_isa(std::string_view requested) {
  if (requested.empty()) return best_isa();
  std::string names;
  for (Isa isa : available_isas()) names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
  const std::optional<Isa> isa = parse_isa(requested);
  if (!isa) {
    return invalid_argument(fmt::format(
        "OSTRO_ISA is \"{}\", which is no instruction set; this machine has {}", requested, names));
  }
  if (!has_isa(*isa))
    return unsupported(fmt::format("OSTRO_ISA is {}, but this machine has only {}", requested, names));
  if (!bf16_admitted(*isa))
    return unsupported(
        fmt::format("OSTRO_ISA is {}, but this machine's {} does not compute the definition of "
                    "bf16 products (docs/numerics.md, N7); unset OSTRO_ISA",
                    requested, requested));
  return *isa;
}

Result<Isa> choose_isa() {
  const char* requested = std::getenv("OSTRO_ISA");
  return choose_isa(requested == nullptr ? std::string_view() : std::string_view(requested));
}

}  // namespace ostro::cpu
