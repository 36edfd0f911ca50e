#include "ostro/products/calibrate.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "ostro/base/aligned.h"
#include "ostro/machine/vector/amx_config.h"

namespace ostro::kernels {
namespace {

constexpr int kSteps = 4000;

// Bursts: chains of multiply-adds on registers, as many as hide the latency. Each returns the operations that
// it did; a multiply-add counts as two.
__attribute__((target("avx2,fma"))) double fma_256() {
  __m256 acc[12];
#pragma GCC unroll 24
  for (auto& x : acc) {
    x = _mm256_setzero_ps();
    __asm__ volatile("" : "+x"(x));  // else the compiler sees twelve equal chains and keeps one
  }
  __m256 one = _mm256_set1_ps(1.0f);
  for (int i = 0; i < kSteps; ++i) {
    __asm__ volatile("" : "+x"(one));
#pragma GCC unroll 24
    for (auto& x : acc) x = _mm256_fmadd_ps(one, one, x);
  }
#pragma GCC unroll 24
  for (auto& x : acc) __asm__ volatile("" ::"x"(x));
  return 12.0 * 16 * kSteps;
}

__attribute__((target("avx2"))) void add_to(const float* from, float* to, int64_t begin, int64_t end) {
  for (int64_t i = begin; i + 8 <= end; i += 8)
    _mm256_storeu_ps(to + i, _mm256_add_ps(_mm256_loadu_ps(from + i), _mm256_loadu_ps(to + i)));
}

__attribute__((target("avx512f"))) double fma_512() {
  __m512 acc[24];
#pragma GCC unroll 24
  for (auto& x : acc) {
    x = _mm512_setzero_ps();
    __asm__ volatile("" : "+v"(x));
  }
  __m512 one = _mm512_set1_ps(1.0f);
  for (int i = 0; i < kSteps; ++i) {
    __asm__ volatile("" : "+v"(one));
#pragma GCC unroll 24
    for (auto& x : acc) x = _mm512_fmadd_ps(one, one, x);
  }
#pragma GCC unroll 24
  for (auto& x : acc) __asm__ volatile("" ::"v"(x));
  return 24.0 * 32 * kSteps;
}

__attribute__((target("avx512f,avx512bf16"))) double vdpbf16() {
  __m512 acc[24];
#pragma GCC unroll 24
  for (auto& x : acc) {
    x = _mm512_setzero_ps();
    __asm__ volatile("" : "+v"(x));
  }
  __m512i one = _mm512_set1_epi32(0x3f803f80);
  for (int i = 0; i < kSteps / 4; ++i) {
    __asm__ volatile("" : "+v"(one));
#pragma GCC unroll 24
    for (auto& x : acc)
      x = _mm512_dpbf16_ps(x, reinterpret_cast<__m512bh>(one), reinterpret_cast<__m512bh>(one));
  }
#pragma GCC unroll 24
  for (auto& x : acc) __asm__ volatile("" ::"v"(x));
  return 24.0 * 64 * (kSteps / 4);
}

__attribute__((target("amx-tile,amx-bf16"))) double tdpbf16() {
  _tile_loadconfig(&machine::kAmxConfig);
  // Ordinary values: with zeros the unit needs less power and runs up to a third faster.
  alignas(64) static const auto kValues = [] {
    std::array<uint16_t, 4 * 512> values;
    uint32_t state = 1;
    for (uint16_t& value : values) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<uint16_t>((state >> 16 & 0x80ffu) | 0x3f00u);
    }
    return values;
  }();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, kValues.data(), 64);
  _tile_loadd(5, kValues.data() + 512, 64);
  _tile_loadd(6, kValues.data() + 1024, 64);
  _tile_loadd(7, kValues.data() + 1536, 64);
  for (int i = 0; i < kSteps; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 4.0 * 2 * 16 * 16 * 32 * kSteps;
}

}  // namespace

double clock_seconds(int threads) {
  timespec now;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double burst_peak(machine::ThreadPool& pool, machine::Isa isa, GemmType type) {
  double (*burst)() = fma_256;
  if (isa >= machine::Isa::kAvx512) burst = fma_512;
  if (type == GemmType::kBf16 && isa == machine::Isa::kAvx512Bf16) burst = vdpbf16;
  if (type == GemmType::kBf16 && isa == machine::Isa::kAmx) burst = tdpbf16;
  std::atomic<int64_t> total{0};
  const double start = clock_seconds(pool.threads());
  pool.run_tiles(pool.threads() * 2, [&](int64_t) { total.fetch_add(static_cast<int64_t>(burst())); });
  return static_cast<double>(total.load()) / (clock_seconds(pool.threads()) - start);
}

double stream_peak(machine::ThreadPool& pool) {
  constexpr int64_t kFloats = int64_t{1} << 25, kPasses = 5;
  const AlignedBytes x = allocate_aligned(kFloats * sizeof(float)),
                     y = allocate_aligned(kFloats * sizeof(float));
  auto* const from = reinterpret_cast<float*>(x.get());
  auto* const to = reinterpret_cast<float*>(y.get());
  double best = 0;
  for (int64_t pass = 0; pass < kPasses; ++pass) {
    const double start = clock_seconds(2);
    pool.parallel_for(kFloats, [&](int64_t begin, int64_t end) {
      // The first pass touches the memory.
      if (pass == 0)
        std::fill(from + begin, from + end, 1.0f), std::fill(to + begin, to + end, 0.0f);
      else
        add_to(from, to, begin, end);
    });
    if (pass > 0) best = std::max(best, 12.0 * kFloats / (clock_seconds(2) - start));
  }
  return best;
}

}  // namespace ostro::kernels
