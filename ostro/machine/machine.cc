#include "ostro/machine/machine.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace ostro::machine {
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

}  // namespace

Machine detect_machine() {
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
  m.vnni256 = get(Isa::kAvx2) && bit(seven_one.a, 4);
  m.vnni512 = get(Isa::kAvx512) && bit(seven.c, 11);
  m.amx_int8 = get(Isa::kAmx) && bit(seven.d, 25);
  char name[12];
  std::memcpy(name, &vendor.b, 4);
  std::memcpy(name + 4, &vendor.d, 4);
  std::memcpy(name + 8, &vendor.c, 4);
  m.amd = std::string_view(name, 12) == "AuthenticAMD";
  return m;
}

const char* target_flags(Isa isa) {
  return isa >= Isa::kAvx512 ? "-march=x86-64-v4 -mprefer-vector-width=512" : "-march=x86-64-v3";
}

}  // namespace ostro::machine
