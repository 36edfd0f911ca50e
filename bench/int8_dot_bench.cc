// Products of int8 blocks (docs/spec/numerics.md, N20) beside the peak of f32 FMA: operands packed before,
// operands as a quantiser leaves them, and both quantised anew from bf16; then the quantisers alone. Each
// round measures the peak and every case in turn; figures are medians of the rounds, ratios are taken within
// a round. One thread is timed by its own clock, which stops while another process has the core.
//
//   int8_dot_bench [--threads N] [--kernel NAME] [--rounds N] [--m N] [--n N] [--k N]
#include <fmt/core.h>
#include <functional>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "ostro/base/aligned.h"
#include "ostro/machine/thread_pool.h"
#include "ostro/numerics/bf16.h"
#include "ostro/products/calibrate.h"
#include "ostro/products/int8_admission.h"
#include "ostro/products/int8_dot.h"
#include "ostro/products/int8_quantize.h"
#include "ostro/products/kernels/dot8_kernel.h"

namespace {

using namespace ostro;

// bf16 numbers whose distribution is like that of a sum.
AlignedBytes values(int64_t count, uint64_t seed) {
  AlignedBytes memory = allocate_aligned(static_cast<size_t>(count * 2));
  auto* out = reinterpret_cast<numerics::Bf16*>(memory.get());
  const numerics::Key key = numerics::key_from_seed(seed);
  for (int64_t i = 0; i < count; ++i)
    out[i] = numerics::to_bf16(numerics::random_normal(key, static_cast<uint64_t>(i)));
  return memory;
}

// An operand that is quantised into memory of its own.
struct Operand {
  Operand(int64_t rows, const kernels::Int8Blocks& blocks)
      : q(allocate_aligned(static_cast<size_t>(rows * blocks.k()))),
        scales(allocate_aligned(static_cast<size_t>(rows * blocks.count() * 4))),
        out{reinterpret_cast<int8_t*>(q.get()), blocks.k(), reinterpret_cast<float*>(scales.get()),
            blocks.count()} {}
  kernels::Int8Operand view() const { return {out.q, out.stride, out.scales, out.scale_stride}; }

  AlignedBytes q, scales;
  kernels::Int8Output out;
};

}  // namespace

int main(int argc, char** argv) {
  int threads = 1, rounds = 9;
  int64_t m = 2040, n = 2048, k = 2048;
  std::string wanted, names;
  const std::vector<const kernels::DotInt8Kernel*> kernels = kernels::int8_kernels();
  for (const kernels::DotInt8Kernel* each : kernels)
    names += (names.empty() ? "" : " or ") + std::string(each->name);
  const Status read =
      bench::read_options(argc, argv,
                          {bench::count_option("--threads", threads), bench::count_option("--rounds", rounds),
                           bench::text_option("--kernel", names, wanted), bench::count_option("--m", m),
                           bench::count_option("--n", n), bench::count_option("--k", k)});
  const kernels::DotInt8Kernel* kernel =
      wanted.empty() ? &kernels::int8_kernel(kernels::best_isa()) : nullptr;
  for (const kernels::DotInt8Kernel* each : kernels)
    if (each->name == wanted) kernel = each;
  if (!read.ok() || kernel == nullptr) {
    fmt::print(stderr, "{}\n", read.ok() ? fmt::format("--kernel takes {}", names) : read.error().message());
    return 2;
  }
  const bool wide = kernel == &kernels::dot8_vnni512() || kernel == &kernels::dot8_amx();
  const machine::Isa isa = kernel == &kernels::dot8_generic() ? machine::Isa::kGeneric
                           : wide                             ? machine::Isa::kAvx512
                                                              : machine::Isa::kAvx2;
  machine::ThreadPool pool(threads);
  const kernels::Int8Blocks along_k(k);
  const AlignedBytes x = values(m * k, 1), w = values(n * k, 2), across = values(k * m, 3);
  const Operand a(m, along_k), b(n, along_k), turned(m, along_k);
  const AlignedBytes c = allocate_aligned(static_cast<size_t>(m * n * 4));
  const kernels::Int8Dot dot({.m = m, .n = n, .blocks = along_k}, *kernel);
  kernels::PackedInt8 packed_a, packed_b;
  const kernels::Int8Dither dither = {.key = {1, 2}, .step = k}, by_column = {.key = {1, 2}, .step = m};
  const auto quantize = [&](const AlignedBytes& from, int64_t rows, const Operand& to,
                            const kernels::Int8Dither* draws) {
    kernels::quantize_rows(pool, isa, {from.get(), kernels::GemmType::kBf16, rows, k, k, draws}, along_k,
                           to.out);
  };
  const auto quantize_across = [&](const kernels::Int8Dither* draws) {
    kernels::quantize_columns(pool, isa, {across.get(), kernels::GemmType::kBf16, k, m, m, draws}, along_k,
                              turned.out);
  };
  struct Case {
    std::string name;
    double operations;  // or elements
    std::function<void()> work;
    bool product;
    std::vector<double> rates = {}, ratios = {};
  };
  const double operations = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto elements = static_cast<double>(m * k);
  std::vector<Case> cases = {
      {"product, both packed", operations, [&] { dot.run(pool, packed_a, packed_b, c.get()); }, true},
      {"product, the right packed", operations, [&] { dot.run(pool, a.view(), packed_b, c.get()); }, true},
      {"product, none packed", operations, [&] { dot.run(pool, a.view(), b.view(), c.get()); }, true},
      {"both quantised from bf16, then the product", operations,
       [&] {
         quantize(x, m, a, nullptr);
         quantize(w, n, b, nullptr);
         dot.run(pool, a.view(), b.view(), c.get());
       },
       true},
      {"pack the left", elements, [&] { dot.pack_a(pool, a.view(), packed_a); }, false},
      {"quantise along rows", elements, [&] { quantize(x, m, a, nullptr); }, false},
      {"quantise along rows, dithered", elements, [&] { quantize(x, m, a, &dither); }, false},
      {"quantise along columns", elements, [&] { quantize_across(nullptr); }, false},
      {"quantise along columns, dithered", elements, [&] { quantize_across(&by_column); }, false}};
  quantize(x, m, a, nullptr);
  quantize(w, n, b, nullptr);
  dot.pack_a(pool, a.view(), packed_a);
  dot.pack_b(pool, b.view(), packed_b);
  std::vector<double> peaks;
  for (int round = -1; round < rounds; ++round)  // the first touches all memory
    for (Case& each : cases) {
      const double peak = kernels::burst_peak(pool, isa, kernels::GemmType::kF32);
      const double start = kernels::clock_seconds(threads);
      each.work();
      const double rate = each.operations / (kernels::clock_seconds(threads) - start);
      if (round < 0) continue;
      peaks.push_back(peak), each.rates.push_back(rate), each.ratios.push_back(rate / peak);
    }
  fmt::print(
      "{}: {} x {} x {}, blocks of {}, {} threads, {} rounds; FMA peak of {} {:.0f} GFLOP/s ({:.0f} to "
      "{:.0f})\n",
      kernel->name, m, n, k, ir::kInt8Block, threads, rounds, machine::isa_name(isa),
      bench::median(peaks) * 1e-9, *std::min_element(peaks.begin(), peaks.end()) * 1e-9,
      *std::max_element(peaks.begin(), peaks.end()) * 1e-9);
  for (const Case& each : cases) {
    const double best = *std::max_element(each.rates.begin(), each.rates.end());
    if (each.product)
      fmt::print("{}: {:.0f} Gop/s (best {:.0f}), {:.2f} of the peak (best {:.2f})\n", each.name,
                 bench::median(each.rates) * 1e-9, best * 1e-9, bench::median(each.ratios),
                 *std::max_element(each.ratios.begin(), each.ratios.end()));
    else
      fmt::print("{}: {:.2f} ns an element (best {:.2f})\n", each.name, 1e9 / bench::median(each.rates),
                 1e9 / best);
  }
}
