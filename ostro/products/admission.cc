#include "ostro/products/admission.h"

#include <immintrin.h>

#include <array>
#include <cmath>
#include <mutex>
#include <string>

#include "ostro/base/log.h"
#include "ostro/products/gemm.h"
#include "ostro/products/gemm_reference.h"

namespace ostro::kernels {
namespace {

constexpr int64_t kN = 42, kK = 64;   // columns; two groups
constexpr int64_t kRows[] = {25, 3};  // 1,050 outputs, and those of few rows, whose kernel is another one

// Values of one regime: exponents `low` to `low` + 7, one in sixteen a signed zero, one in sixteen denormal.
std::vector<uint16_t> draw(int64_t count, uint32_t low, uint64_t& state) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (uint16_t& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint32_t r = static_cast<uint32_t>(state >> 32);
    const uint32_t kind = r >> 28;
    const uint32_t exponent = kind < 2 ? 0 : low + (r >> 24 & 7);
    const uint32_t mantissa = kind == 0 ? 0 : r >> 8 & 0x7f;
    value = static_cast<uint16_t>((r & 1) << 15 | exponent << 7 | mantissa);
  }
  return values;
}

uint16_t power_of_two(int exponent) { return static_cast<uint16_t>((exponent + 127) << 7); }

// Sums of 2^-126 less 2^-152, 2^-151 (a tie) or 3 * 2^-152, on either chain: they show whether a result
// becomes zero exactly when it is tiny after rounding. Row 0 against columns 0 to 5.
void set_boundary(std::vector<uint16_t>& a, std::vector<uint16_t>& b) {
  for (int64_t k = 0; k < kK; ++k) {
    a[k] = 0;
    for (int64_t j = 0; j < 6; ++j) b[k * kN + j] = 0;
  }
  a[0] = a[1] = power_of_two(-63);
  a[2] = a[3] = power_of_two(-76);
  for (int64_t j = 0; j < 6; ++j) {
    const int64_t odd = j % 2;  // on either chain
    const uint16_t less[] = {power_of_two(-76), power_of_two(-75),
                             static_cast<uint16_t>(power_of_two(-75) | 0x40)};
    b[odd * kN + j] = power_of_two(-63);
    b[(2 + odd) * kN + j] = static_cast<uint16_t>(less[j / 2] | 0x8000);
  }
}

bool same(float x, float y) {
  return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) || (std::isnan(x) && std::isnan(y));
}

// Multiplies matrices of three ranges of exponents and the boundary cases, and compares each output with the
// scalar definition. Returns the first difference, or an empty text.
std::string compare(machine::Isa isa, int64_t rows) {
  GemmSpec spec;
  spec.in = GemmType::kBf16;
  const auto count = [](int64_t n, int64_t stride) {
    std::vector<int64_t> offsets(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) offsets[static_cast<size_t>(i)] = i * stride;
    return offsets;
  };
  spec.a_row = count(rows, kK), spec.a_col = count(kK, 1);
  spec.b_row = count(kK, kN), spec.b_col = count(kN, 1);
  spec.c_row = count(rows, kN), spec.c_col = count(kN, 1);
  const Gemm gemm(std::move(spec), isa);
  machine::ThreadPool pool(1);
  std::vector<float> c(rows * kN);
  uint64_t state = 2026;
  for (const char* regime : {"moderate", "underflow", "overflow", "boundary"}) {
    const uint32_t low = *regime == 'm' ? 120 : *regime == 'o' ? 187 : 60;
    std::vector<uint16_t> a = draw(rows * kK, low, state), b = draw(kK * kN, low, state);
    if (*regime == 'b') set_boundary(a, b);
    gemm.run(pool, a.data(), b.data(), c.data());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        const float want = reference::dot_bf16([&](int64_t k) { return a[i * kK + k]; },
                                               [&](int64_t k) { return b[k * kN + j]; }, 0, kK);
        if (!same(want, c[i * kN + j]))
          return fmt::format("{} case ({}, {}): {:a} instead of {:a}", regime, i, j, c[i * kN + j], want);
      }
    }
  }
  return {};
}

}  // namespace

bool bf16_admitted(machine::Isa isa) {
  static std::array<std::once_flag, std::size(machine::kAllIsas)> once;
  static std::array<bool, std::size(machine::kAllIsas)> admitted;
  const size_t index = static_cast<size_t>(isa);
  std::call_once(once[index], [&] {
    const unsigned mxcsr = _mm_getcsr();
    _mm_setcsr(0x9fc0);
    std::string difference;
    for (const int64_t rows : kRows)
      if (difference.empty()) difference = compare(isa, rows);
    _mm_setcsr(mxcsr);
    admitted[index] = difference.empty();
    if (!admitted[index])
      log_error(fmt::format("instruction set {} is refused: its bf16 product differs from the definition, {}",
                            machine::isa_name(isa), difference));
  });
  return admitted[index];
}

}  // namespace ostro::kernels
