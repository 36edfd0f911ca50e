#include "ostro/products/tc16/tc16_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>

#include "ostro/base/aligned.h"
#include "ostro/base/log.h"
#include "ostro/numerics/tc16.h"
#include "ostro/products/tile/gemm_kernel.h"

namespace ostro::kernels {
namespace {

constexpr int64_t kAdmittedK = 70;  // groups, and a short one
constexpr int64_t kSplit = 32;      // where the second call goes on

uint32_t next_bits(uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(state >> 32);
}

// A number whose exponent field is `low` to low + span - 1.
uint16_t number_of(uint32_t r, uint32_t low, uint32_t span) {
  return static_cast<uint16_t>((r & 0x807fu) | (low + (r >> 16 & 0xffu) % span) << 7);
}

uint16_t draw_one(int kind, bool of_a, uint32_t r) {
  switch (kind) {
    case 1: return number_of(r, 97, 61);
    case 3: return number_of(r, 46, 24);
    case 4: return of_a ? number_of(r, 0, 2) : number_of(r, 100, 30);
    case 5: return number_of(r, 186, 6);
    case 6:
      return r >> 28 < 7 ? static_cast<uint16_t>(r & 0x8000u)
                         : number_of(r, of_a ? 107 : 100, of_a ? 140 : 30);
    case 7: return static_cast<uint16_t>(r >> 29 == 0 ? r : r & 0xbfffu);  // rarely not finite
    default: return r >> 28 == 0 ? static_cast<uint16_t>(r & 0x8000u) : number_of(r, 122, 8);
  }
}

struct Panel {
  AlignedBytes bytes;
  Panel(const uint16_t* base, int width, int64_t w_step, int64_t k, int64_t k_step, int64_t padded,
        int k_bytes, void (*pack)(const PanelSource&, void*))
      : bytes(allocate_aligned(static_cast<size_t>(padded * k_bytes))) {
    std::vector<int64_t> w_offsets, k_offsets;
    std::vector<int32_t> runs;
    for (int w = 0; w < width; ++w) w_offsets.push_back(w * w_step);
    for (int64_t i = 0; i < k; ++i) {
      k_offsets.push_back(i * k_step);
      runs.push_back(k_step == 1 ? static_cast<int32_t>(k - i) : 1);
    }
    pack({.base = base,
          .w_offsets = w_offsets.data(),
          .width = width,
          .w_contiguous = w_step == 1,
          .k_offsets = k_offsets.data(),
          .k_run = runs.data(),
          .count = k},
         bytes.get());
  }
};

bool is_equal(float x, float y) {
  return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) || (std::isnan(x) && std::isnan(y));
}

const GemmKernel& best_tc16(machine::Isa isa) {
  if (isa == machine::Isa::kGeneric) return gemm_tc16_generic();
  return isa == machine::Isa::kAvx2 ? gemm_tc16_avx2() : gemm_tc16_avx512();
}

}  // namespace

Tc16Operands draw_tc16(int kind, int64_t m, int64_t k, int64_t n, uint64_t& state) {
  Tc16Operands out;
  out.a.resize(static_cast<size_t>(m * k));
  out.b.resize(static_cast<size_t>(k * n));
  for (uint16_t& x : out.a) x = draw_one(kind, true, next_bits(state));
  for (uint16_t& x : out.b) x = draw_one(kind, false, next_bits(state));
  if (kind == 0 && m > 1) std::fill_n(out.a.begin() + k, k, uint16_t{0});  // a row without addends
  if (kind != 2) return out;
  // Neighbours along k, opposite or nearly so.
  for (int64_t i = 1; i < k; i += 2) {
    for (int64_t row = 0; row < m; ++row) {
      const size_t at = static_cast<size_t>(row * k + i);
      out.a[at] = static_cast<uint16_t>(out.a[at - 1] ^ (next_bits(state) >> 29 == 0 ? 1 : 0));
    }
    for (int64_t column = 0; column < n; ++column)
      out.b[static_cast<size_t>(i * n + column)] =
          static_cast<uint16_t>(out.b[static_cast<size_t>((i - 1) * n + column)] ^ 0x8000u);
  }
  return out;
}

std::string tc16_difference(const GemmKernel& kernel, int64_t k, int kind, uint64_t seed) {
  const int64_t m = kernel.mr, n = kernel.nr,
                padded = (k + kernel.k_unit - 1) / kernel.k_unit * kernel.k_unit;
  uint64_t state = seed;
  const Tc16Operands x = draw_tc16(kind, m, k, n, state);
  const Panel a(x.a.data(), kernel.mr, k, k, 1, padded, kernel.a_bytes, kernel.pack_a),
      b(x.b.data(), kernel.nr, 1, k, n, padded, kernel.b_bytes, kernel.pack_b);
  const AlignedBytes tiles = allocate_aligned(static_cast<size_t>(2 * m * n * 4));
  auto* const whole = reinterpret_cast<float*>(tiles.get());
  float* const in_parts = whole + m * n;
  kernel.multiply(padded, a.bytes.get(), b.bytes.get(), whole, n, kernel.mr, true);
  const int64_t first = std::min(padded, kSplit);
  kernel.multiply(first, a.bytes.get(), b.bytes.get(), in_parts, n, kernel.mr, true);
  if (first < padded)
    kernel.multiply(padded - first, a.bytes.get() + first * kernel.a_bytes,
                    b.bytes.get() + first * kernel.b_bytes, in_parts, n, kernel.mr, false);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const float want = numerics::dot_tc16(
          k, [&](int64_t at) { return numerics::Bf16{x.a[static_cast<size_t>(i * k + at)]}; },
          [&](int64_t at) { return numerics::Bf16{x.b[static_cast<size_t>(at * n + j)]}; });
      for (const float got : {whole[i * n + j], in_parts[i * n + j]})
        if (!is_equal(want, got))
          return fmt::format("kind {}, {} products, output ({}, {}): {:#010x} instead of {:#010x}", kind, k,
                             i, j, std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want));
    }
  return {};
}

const GemmKernel& tc16_kernel(machine::Isa isa) {
  static std::mutex mutex;
  static std::map<const GemmKernel*, bool> known;
  const GemmKernel& kernel = best_tc16(isa);
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = known.try_emplace(&kernel, true);
  if (is_new)
    for (int kind = 0; kind < kTc16Kinds && at->second; ++kind) {
      const std::string difference =
          tc16_difference(kernel, kAdmittedK, kind, 2026 + static_cast<uint64_t>(kind));
      at->second = difference.empty();
      if (!difference.empty())
        log_error(
            fmt::format("the {} kernel of products by the rule of tensor cores is refused: it differs from "
                        "the definition (docs/spec/numerics.md, N23), {}",
                        machine::isa_name(isa), difference));
    }
  return at->second ? kernel : gemm_tc16_generic();
}

std::vector<const GemmKernel*> tc16_kernels() {
  std::vector<const GemmKernel*> kernels;
  for (const machine::Isa isa : machine::available_isas()) {
    const GemmKernel* const kernel = &best_tc16(isa);
    if (kernels.empty() || kernels.back() != kernel) kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace ostro::kernels
