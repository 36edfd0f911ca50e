// Matrix product speed as a share of the machine's peak, measured in the same breath: before and after every
// timed product runs a burst of the kernel's own instruction on registers alone, and the figures are medians
// of the pairwise ratios, so that a busy neighbour disturbs both sides alike. One thread is timed by its own
// clock, which stops while another process has the core.
//
//   gemm_bench [--threads N] [--isa NAME] [--in f32|bf16|bf16_tc16] [--rounds N] [--filter TEXT] [--m M]
//
// bf16_tc16 is bf16 by the rule of tensor cores (docs/spec/numerics.md, N23), beside the peak of bf16.
//
// fwd and dgrad (bench/kernel_cases.h) have W packed beforehand, wgrad packs both operands inside the timed
// region.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/kernel_cases.h"
#include "ostro/products/calibrate.h"
#include "ostro/products/choose_isa.h"
#include "ostro/products/gemm.h"

namespace {

using namespace ostro;
using namespace ostro::kernels;
using namespace ostro::machine;

struct Case {
  std::string name;
  int64_t tokens, in, out;
};

struct Options {
  int threads = 1, rounds = 7;
  Isa isa = best_isa();
  GemmType type = GemmType::kF32;
  bool tc16 = false;
  std::string filter;
  int64_t tokens = 2048;
};

void measure(const Options& o, ThreadPool& pool, const Case& size, const std::string& layout) {
  const std::string name = fmt::format("{} {}x{}x{} {}", size.name, size.tokens, size.out, size.in, layout);
  if (name.find(o.filter) == std::string::npos) return;
  bench::LinearCase linear = bench::linear_case(layout, size.tokens, size.out, size.in, o.type);
  linear.spec.tc16 = o.tc16;
  const Gemm gemm(std::move(linear.spec), o.isa);
  const bool bf16 = o.type == GemmType::kBf16;
  const AlignedBytes a = bench::fixed_values(linear.a, bf16, 0), b = bench::fixed_values(linear.b, bf16, 1);
  const AlignedBytes c = allocate_aligned(static_cast<size_t>(linear.c) * 4);
  PackedB packed;
  if (linear.prepacked) gemm.pack_b(pool, b.get(), packed);
  const double flops =
      2.0 * static_cast<double>(gemm.m()) * static_cast<double>(gemm.n()) * static_cast<double>(gemm.k());
  std::vector<double> shares;
  double best = 0;
  for (int round = -1; round < o.rounds; ++round) {
    const double before = kernels::burst_peak(pool, o.isa, o.type);
    const double start = kernels::clock_seconds(o.threads);
    if (linear.prepacked) {
      gemm.run(pool, a.get(), packed, c.get());
    } else {
      gemm.run(pool, a.get(), b.get(), c.get());
    }
    const double rate = flops / (kernels::clock_seconds(o.threads) - start);
    const double peak = std::max(before, kernels::burst_peak(pool, o.isa, o.type));
    if (round < 0) continue;  // warm-up
    shares.push_back(rate / peak);
    best = std::max(best, rate);
  }
  fmt::print("{:<28} {:>5.1f} % median {:>5.1f} % best   {:>7.1f} GFLOP/s best\n", name,
             100 * bench::median(shares), 100 * *std::max_element(shares.begin(), shares.end()), best * 1e-9);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const std::vector<bench::Option> options = {
      bench::count_option("--threads", o.threads),
      bench::isa_option("--isa", o.isa),
      bench::Option{"--in", "f32, bf16 or bf16_tc16",
                    [&](const std::string& value) {
                      o.tc16 = value == "bf16_tc16";
                      o.type = value == "f32" ? GemmType::kF32 : GemmType::kBf16;
                      return value == "f32" || value == "bf16" || o.tc16;
                    }},
      bench::count_option("--rounds", o.rounds),
      bench::text_option("--filter", "a part of a case's name", o.filter),
      bench::count_option("--m", o.tokens)};
  if (const Status status = bench::read_options(argc, argv, options); !status.ok()) {
    fmt::print(stderr, "gemm_bench: {}\n", status.error().message());
    return 2;
  }
  ThreadPool pool(o.threads);
  fmt::print("{} {}, {} threads; tokens x out x in\n", isa_name(o.isa),
             o.type == GemmType::kF32 ? "f32"
             : o.tc16                 ? "bf16_tc16"
                                      : "bf16",
             o.threads);
  const Case cases[] = {{"nano.qkv", o.tokens, 256, 512},    {"nano.up", o.tokens, 256, 1376},
                        {"nano.down", o.tokens, 688, 256},   {"nano.head", o.tokens, 256, 4096},
                        {"small.qkv", o.tokens, 512, 1024},  {"small.o", o.tokens, 512, 512},
                        {"small.up", o.tokens, 512, 2816},   {"small.down", o.tokens, 1408, 512},
                        {"small.head", o.tokens, 512, 32000}};
  for (const Case& c : cases)
    for (const char* layout : {"fwd", "dgrad", "wgrad"}) measure(o, pool, c, layout);
}
