// Speed of fused attention: GFLOP/s forward and backward, as a share of one core's measured f32 FMA peak
// times threads. Usage: attention_bench [threads] [isa]. FLOPs count the lower triangle: forward 2 S^2 D a
// head, backward 5 S^2 D.
#include <fmt/core.h>
#include <immintrin.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "ostro/cpu/attention.h"

namespace {

using ostro::cpu::AttentionBackward;
using ostro::cpu::AttentionForward;
using ostro::cpu::FloatType;
using ostro::cpu::Isa;
using ostro::cpu::ThreadPool;

bool on_one_thread = true;

double seconds() {
  timespec t;
  clock_gettime(on_one_thread ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// GFLOP/s of independent FMA chains on one core.
template <class Chains>
double fma_rate(Chains chains, double flops_per_call) {
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    const double start = seconds();
    chains();
    best = std::max(best, flops_per_call / (seconds() - start) * 1e-9);
  }
  return best;
}

constexpr int kChainSteps = 2000000;

[[gnu::target("avx512f"), gnu::noinline]] void chains_avx512() {
  __m512 acc[16], x = _mm512_set1_ps(1.0f), y = _mm512_set1_ps(1e-9f);
  for (__m512& a : acc) a = _mm512_setzero_ps();
  for (int i = 0; i < kChainSteps; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j) acc[j] = _mm512_fmadd_ps(acc[j], x, y);
    __asm__ volatile("" : "+v"(x));
  }
  for (__m512& a : acc) __asm__ volatile("" : : "v"(a));
}

[[gnu::noinline]] void chains_avx2() {
  __m256 acc[12], x = _mm256_set1_ps(1.0f), y = _mm256_set1_ps(1e-9f);
  for (__m256& a : acc) a = _mm256_setzero_ps();
  for (int i = 0; i < kChainSteps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) acc[j] = _mm256_fmadd_ps(acc[j], x, y);
    __asm__ volatile("" : "+x"(x));
  }
  for (__m256& a : acc) __asm__ volatile("" : : "x"(a));
}

double peak(Isa isa) {
  if (isa >= Isa::kAvx512) return fma_rate(chains_avx512, 2.0 * 16 * 16 * kChainSteps);
  return fma_rate(chains_avx2, 2.0 * 12 * 8 * kChainSteps);
}

double best_seconds(int repeats, auto&& run) {
  run();
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const double start = seconds();
    run();
    best = std::min(best, seconds() - start);
  }
  return best;
}

void bench(int64_t dims, int64_t length, FloatType type, Isa isa, ThreadPool& pool, double machine_peak) {
  const int64_t heads = 4, count = length * heads * dims;
  const auto size = static_cast<size_t>(count);
  std::vector<float> wide[4];
  std::vector<uint16_t> half[4];
  const void* data[4];
  uint32_t state = 1;
  for (int a = 0; a < 4; ++a) {
    wide[a].resize(size);
    half[a].resize(size);
    for (size_t i = 0; i < size; ++i) {
      state = state * 1664525u + 1013904223u;
      wide[a][i] = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
      uint32_t bits;
      __builtin_memcpy(&bits, &wide[a][i], 4);
      half[a][i] = static_cast<uint16_t>(bits >> 16);
    }
    data[a] = type == FloatType::kF32 ? static_cast<const void*>(wide[a].data()) : half[a].data();
  }
  std::vector<float> out(size), dq(size), dk(size), dv(size);
  std::vector<float> m(static_cast<size_t>(length * heads)), r(m.size());

  AttentionForward f;
  f.shape.batch = 1;
  f.shape.pos = f.shape.key_pos = length;
  f.shape.kv_heads = heads;
  f.shape.group = 1;
  f.shape.head_dim = dims;
  f.shape.type = f.out_type = type;
  f.shape.scale = dims == 64 ? 0.125f : 0.08838835f;
  f.shape.mask.causal = true;
  f.q = data[0], f.k = data[1], f.v = data[2];
  f.out = out.data(), f.m = m.data(), f.r = r.data();
  f.q_strides = f.out_strides = {count, heads * dims, dims, dims};
  f.k_strides = f.v_strides = {count, heads * dims, dims};
  AttentionBackward b;
  b.shape = f.shape;
  b.q = f.q, b.k = f.k, b.v = f.v, b.out = f.out, b.dout = data[3];
  b.out_type = type;
  b.m = f.m, b.r = f.r;
  b.dq = dq.data(), b.dk = dk.data(), b.dv = dv.data();
  b.q_strides = b.out_strides = b.dout_strides = b.dq_strides = f.q_strides;
  b.k_strides = b.v_strides = b.dk_strides = b.dv_strides = f.k_strides;

  const double square =
      static_cast<double>(length) * static_cast<double>(length) * static_cast<double>(dims * heads);
  const int repeats = length > 1000 ? 5 : 20;
  const double forward =
      2 * square * 1e-9 / best_seconds(repeats, [&] { ostro::cpu::attention_forward(f, isa, pool); });
  const double backward =
      5 * square * 1e-9 / best_seconds(repeats, [&] { ostro::cpu::attention_backward(b, isa, pool); });
  fmt::print("{:5} {:5} {:5} {:10.1f} {:6.0f}% {:10.1f} {:6.0f}%\n", type == FloatType::kF32 ? "f32" : "bf16",
             dims, length, forward, 100 * forward / machine_peak, backward, 100 * backward / machine_peak);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  const auto isa = ostro::cpu::choose_isa(argc > 2 ? argv[2] : "");
  if (!isa.ok()) {
    fmt::print(stderr, "attention_bench: {}\n", isa.error().message());
    return 1;
  }
  ThreadPool pool(threads);
  const double machine_peak = peak(*isa) * threads;
  on_one_thread = threads == 1;
  fmt::print("{}, {} threads, f32 FMA peak {:.0f} GFLOP/s\n", ostro::cpu::isa_name(*isa), threads,
             machine_peak);
  fmt::print("{:5} {:>5} {:>5} {:>18} {:>18}\n", "type", "D", "S", "forward GFLOP/s", "backward GFLOP/s");
  for (FloatType type : {FloatType::kF32, FloatType::kBf16})
    for (int64_t dims : {64, 128})
      for (int64_t length : {512, 2048}) bench(dims, length, type, *isa, pool, machine_peak);
  return 0;
}
