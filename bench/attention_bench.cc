// Speed of fused attention: GFLOP/s forward and backward, and the share of the f32 FMA peak of the threads,
// also for bf16. Usage: attention_bench [threads] [isa]. FLOPs count the lower triangle: forward 2 S^2 D a
// head, backward 5 S^2 D.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "ostro/cpu/attention.h"
#include "ostro/cpu/calibrate.h"

namespace {

using ostro::cpu::AttentionBackward;
using ostro::cpu::AttentionForward;
using ostro::cpu::FloatType;
using ostro::cpu::FunctionRef;
using ostro::cpu::Isa;
using ostro::cpu::ThreadPool;

struct Speed {
  double rate, share;  // GFLOP/s; of the f32 FMA peak
};

// Medians over rounds, each between two bursts of the peak, so that a busy neighbour disturbs both sides
// alike.
Speed measure(double flops, Isa isa, ThreadPool& pool, FunctionRef<void()> run) {
  constexpr int kRounds = 11;
  std::vector<double> rates, shares;
  run();
  for (int i = 0; i < kRounds; ++i) {
    const double before = ostro::cpu::burst_peak(pool, isa, ostro::cpu::GemmType::kF32);
    const double start = ostro::cpu::clock_seconds(pool.threads());
    run();
    const double rate = flops / (ostro::cpu::clock_seconds(pool.threads()) - start);
    const double after = ostro::cpu::burst_peak(pool, isa, ostro::cpu::GemmType::kF32);
    rates.push_back(rate * 1e-9);
    shares.push_back(2 * rate / (before + after));
  }
  std::sort(rates.begin(), rates.end());
  std::sort(shares.begin(), shares.end());
  return {rates[kRounds / 2], shares[kRounds / 2]};
}

void bench(int64_t dims, int64_t length, FloatType type, Isa isa, ThreadPool& pool) {
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
  const Speed forward = measure(2 * square, isa, pool, [&] { ostro::cpu::attention_forward(f, isa, pool); });
  const Speed backward =
      measure(5 * square, isa, pool, [&] { ostro::cpu::attention_backward(b, isa, pool); });
  fmt::print("{:5} {:5} {:5} {:10.1f} {:6.0f}% {:10.1f} {:6.0f}%\n", type == FloatType::kF32 ? "f32" : "bf16",
             dims, length, forward.rate, 100 * forward.share, backward.rate, 100 * backward.share);
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
  fmt::print("{}, {} threads\n", ostro::cpu::isa_name(*isa), threads);
  fmt::print("{:5} {:>5} {:>5} {:>18} {:>18}\n", "type", "D", "S", "forward GFLOP/s", "backward GFLOP/s");
  for (FloatType type : {FloatType::kF32, FloatType::kBf16})
    for (int64_t dims : {64, 128})
      for (int64_t length : {512, 2048}) bench(dims, length, type, *isa, pool);
  return 0;
}
