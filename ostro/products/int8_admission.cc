#include "ostro/products/int8_admission.h"

#include <fmt/format.h>
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/machine/machine.h"
#include "ostro/products/int8_dot.h"
#include "ostro/products/int8_reference.h"
#include "ostro/products/kernels/dot8_kernel.h"

namespace ostro::kernels {
namespace {

constexpr int64_t kInt8M = 35, kInt8N = 37, kInt8K = 2 * 256 + 71;  // 1,295 outputs of three blocks

const machine::Machine& this_machine() {
  static const machine::Machine machine = machine::detect_machine();
  return machine;
}

// A kernel and the least instruction set that may use it.
struct Candidate {
  const DotInt8Kernel& (*kernel)();
  machine::Isa least;
  bool runs;
};

// The fastest first. VPMADDWD alone is the faster way with AVX2 on Intel: there VPSIGNB, VPMADDUBSW and
// VPMADDWD share two units. On AMD they do not.
const std::vector<Candidate>& candidates() {
  static const std::vector<Candidate> all = [] {
    const machine::Machine& m = this_machine();
    std::vector<Candidate> list = {
        {dot8_amx, machine::Isa::kAmx, machine::has_isa(machine::Isa::kAmx) && m.amx_int8},
        {dot8_vnni512, machine::Isa::kAvx512, machine::has_isa(machine::Isa::kAvx512) && m.vnni512},
        {dot8_vnni256, machine::Isa::kAvx2, machine::has_isa(machine::Isa::kAvx2) && m.vnni256},
        {dot8_avx2_words, machine::Isa::kAvx2, machine::has_isa(machine::Isa::kAvx2)},
        {dot8_avx2_bytes, machine::Isa::kAvx2, machine::has_isa(machine::Isa::kAvx2)},
        {dot8_generic, machine::Isa::kGeneric, true}};
    if (m.amd) std::swap(list[3], list[4]);
    return list;
  }();
  return all;
}

// The numbers of a row, by `kind`: the largest of one sign, of changing signs, zeros, else random ones.
std::vector<int8_t> numbers(int64_t rows, uint64_t& state) {
  std::vector<int8_t> q(static_cast<size_t>(rows * kInt8K));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < kInt8K; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const auto random = static_cast<int>((state >> 33) % 255) - 127;
      const int kinds[] = {127, -127, k % 2 == 0 ? 127 : -127, k % 3 == 0 ? -127 : 0, random};
      q[static_cast<size_t>(row * kInt8K + k)] = static_cast<int8_t>(kinds[row < 4 ? row : 4]);
    }
  return q;
}

// Powers of two from 2^-126 to 2^123: sums that underflow, overflow and are ordinary.
std::vector<float> powers(int64_t rows, uint64_t& state) {
  std::vector<float> scales(static_cast<size_t>(rows * 3));
  for (float& scale : scales) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto random = static_cast<uint32_t>(state >> 40);
    const uint32_t exponent = random % 4 != 0 ? 100 + random / 4 % 50 : 1 + random / 4 % 250;
    scale = random % 61 == 0 ? 0.0f : std::bit_cast<float>(exponent << 23);
  }
  return scales;
}

std::string compare_int8(const DotInt8Kernel& kernel) {
  uint64_t state = 2027;
  const std::vector<int8_t> a = numbers(kInt8M, state), b = numbers(kInt8N, state);
  const std::vector<float> sa = powers(kInt8M, state), sb = powers(kInt8N, state);
  const Int8Dot dot({.m = kInt8M, .n = kInt8N, .blocks = Int8Blocks(kInt8K)}, kernel);
  std::vector<float> c(kInt8M * kInt8N);
  machine::ThreadPool pool(1);
  dot.run(pool, Int8Operand{a.data(), kInt8K, sa.data(), 3}, Int8Operand{b.data(), kInt8K, sb.data(), 3},
          c.data());
  for (int64_t i = 0; i < kInt8M; ++i)
    for (int64_t j = 0; j < kInt8N; ++j) {
      const float want = reference::dot_int8(
          [&](int64_t k) { return a[static_cast<size_t>(i * kInt8K + k)]; },
          [&](int64_t k) { return b[static_cast<size_t>(j * kInt8K + k)]; },
          [&](int64_t block) { return sa[static_cast<size_t>(i * 3 + block)]; },
          [&](int64_t block) { return sb[static_cast<size_t>(j * 3 + block)]; }, 0, kInt8K, ir::kInt8Block);
      const float got = c[static_cast<size_t>(i * kInt8N + j)];
      if (std::bit_cast<uint32_t>(want) != std::bit_cast<uint32_t>(got) &&
          !(std::isnan(want) && std::isnan(got)))
        return fmt::format("case ({}, {}): {:a} instead of {:a}", i, j, got, want);
    }
  return {};
}

}  // namespace

std::string int8_difference(const DotInt8Kernel& kernel) {
  const unsigned mxcsr = _mm_getcsr();
  _mm_setcsr(0x9fc0);
  std::string difference = compare_int8(kernel);
  _mm_setcsr(mxcsr);
  return difference;
}
bool int8_admitted(const DotInt8Kernel& kernel) {
  static std::mutex mutex;
  static std::map<const DotInt8Kernel*, bool> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(&kernel);
  if (found != known.end()) return found->second;
  const std::string difference = int8_difference(kernel);
  if (!difference.empty())
    log_error(fmt::format("the int8 product of {} is refused: it differs from the definition, {}",
                          kernel.name, difference));
  return known[&kernel] = difference.empty();
}

std::vector<const DotInt8Kernel*> int8_kernels() {
  std::vector<const DotInt8Kernel*> kernels;
  for (const Candidate& c : candidates())
    if (c.runs) kernels.push_back(&c.kernel());
  return kernels;
}

const DotInt8Kernel& int8_kernel(machine::Isa isa) {
  OSTRO_CHECK(machine::has_isa(isa), "this machine cannot run {}", machine::isa_name(isa));
  for (const Candidate& c : candidates())
    if (c.runs && c.least <= isa && int8_admitted(c.kernel())) return c.kernel();
  OSTRO_CHECK(false, "no int8 product of this machine computes the definition (docs/spec/numerics.md, N20)");
}

}  // namespace ostro::kernels
