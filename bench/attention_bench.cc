// Speed of fused attention: GFLOP/s forward and backward, and the share of the f32 FMA peak of the threads,
// also for bf16 and for integers (N21, on bf16 operands): attention_bench [--threads N] [--isa NAME]. FLOPs
// count the lower triangle: forward 2 S^2 D a head, backward 5 S^2 D.
#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "bench/arguments.h"
#include "bench/kernel_cases.h"
#include "ostro/kernels/attention/attention.h"
#include "ostro/products/calibrate.h"
#include "ostro/products/choose_isa.h"

namespace {

using ostro::machine::FloatType;
using ostro::machine::FunctionRef;
using ostro::machine::Isa;
using ostro::machine::ThreadPool;

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
    const double before = ostro::kernels::burst_peak(pool, isa, ostro::kernels::GemmType::kF32);
    const double start = ostro::kernels::clock_seconds(pool.threads());
    run();
    const double rate = flops / (ostro::kernels::clock_seconds(pool.threads()) - start);
    const double after = ostro::kernels::burst_peak(pool, isa, ostro::kernels::GemmType::kF32);
    rates.push_back(rate * 1e-9);
    shares.push_back(2 * rate / (before + after));
  }
  std::sort(rates.begin(), rates.end());
  std::sort(shares.begin(), shares.end());
  return {rates[kRounds / 2], shares[kRounds / 2]};
}

void bench(int64_t dims, int64_t length, FloatType type, bool integers, Isa isa, ThreadPool& pool) {
  const int64_t heads = 4;
  ostro::bench::AttentionCase c(heads, dims, length, type);
  c.forward.shape.integers = c.backward.shape.integers = integers;
  const double square =
      static_cast<double>(length) * static_cast<double>(length) * static_cast<double>(dims * heads);
  const Speed forward =
      measure(2 * square, isa, pool, [&] { ostro::kernels::attention_forward(c.forward, isa, pool); });
  const Speed backward =
      measure(5 * square, isa, pool, [&] { ostro::kernels::attention_backward(c.backward, isa, pool); });
  fmt::print("{:5} {:5} {:5} {:10.1f} {:6.0f}% {:10.1f} {:6.0f}%\n",
             integers                  ? "int8"
             : type == FloatType::kF32 ? "f32"
                                       : "bf16",
             dims, length, forward.rate, 100 * forward.share, backward.rate, 100 * backward.share);
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 1;
  Isa isa = ostro::kernels::best_isa();
  const std::vector<ostro::bench::Option> options = {ostro::bench::count_option("--threads", threads),
                                                     ostro::bench::isa_option("--isa", isa)};
  if (const ostro::Status status = ostro::bench::read_options(argc, argv, options); !status.ok()) {
    fmt::print(stderr, "attention_bench: {}\n", status.error().message());
    return 2;
  }
  ThreadPool pool(threads);
  fmt::print("{}, {} threads\n", ostro::machine::isa_name(isa), threads);
  fmt::print("{:5} {:>5} {:>5} {:>18} {:>18}\n", "type", "D", "S", "forward GFLOP/s", "backward GFLOP/s");
  for (const auto& [type, integers] :
       {std::pair(FloatType::kF32, false), {FloatType::kBf16, false}, {FloatType::kBf16, true}})
    for (int64_t dims : {64, 128})
      for (int64_t length : {512, 2048}) bench(dims, length, type, integers, isa, pool);
  return 0;
}
