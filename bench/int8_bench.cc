// A product of few rows with an int8 matrix and its scales, beside what memory gives: a copy of as many bytes
// as the matrix has, and reading them; and the same product with a bf16 matrix. Interleaved; medians of the
// rounds. Rates are bytes of the matrix, or copied, per second; one thread is timed by its own clock, which
// stops while another process has the core.
//
//   int8_bench [--threads N] [--isa NAME] [--in f32|bf16] [--rounds N] [--rows N] [--k N] [--n N] [--groups
//   N]
#include <fmt/core.h>

#include <cstring>
#include <vector>

#include "bench/arguments.h"
#include "ostro/base/aligned.h"
#include "ostro/machine/thread_pool.h"
#include "ostro/products/calibrate.h"
#include "ostro/products/gemm.h"

namespace {

using namespace ostro;

struct Options {
  int threads = 1, rounds = 7;
  machine::Isa isa = kernels::best_isa();
  bool bf16 = true;
  int64_t rows = 1, k = 6144, n = 65536, groups = 1;
};

uint32_t mixed(uint64_t i) {
  i = (i + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  return static_cast<uint32_t>((i ^ i >> 31) * 0x94d049bb133111ebu >> 32);
}

void fill_values(std::byte* to, int64_t count, bool bf16, int shift) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits =
        (127u - static_cast<uint32_t>(shift)) << 23 | (mixed(static_cast<uint64_t>(i)) & 0x7f0000u);
    if (bf16) {
      const auto half = static_cast<uint16_t>(bits >> 16);
      std::memcpy(to + 2 * i, &half, 2);
    } else {
      std::memcpy(to + 4 * i, &bits, 4);
    }
  }
}

kernels::GemmSpec spec_of(const Options& o) {
  kernels::GemmSpec s;
  s.in = s.out = o.bf16 ? kernels::GemmType::kBf16 : kernels::GemmType::kF32;
  for (int64_t i = 0; i < o.rows; ++i) s.a_row.push_back(i * o.k), s.c_row.push_back(i * o.n);
  for (int64_t i = 0; i < o.k; ++i) s.a_col.push_back(i), s.b_row.push_back(i * o.n);
  for (int64_t i = 0; i < o.n; ++i) s.b_col.push_back(i), s.c_col.push_back(i);
  return s;
}

// The sum of all bytes' words, which keeps the reads.
uint64_t read_all(machine::ThreadPool& pool, const std::byte* from, int64_t bytes) {
  std::vector<uint64_t> sums(static_cast<size_t>(pool.threads()) * 8);
  const int64_t parts = pool.threads();
  pool.run_tiles(parts, [&](int64_t part) {
    using Words = uint64_t __attribute__((vector_size(32)));
    Words sum[4] = {};
    const int64_t begin = bytes / 128 * part / parts, end = bytes / 128 * (part + 1) / parts;
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < 4; ++j) {
        Words x;
        std::memcpy(&x, from + 128 * i + 32 * j, sizeof x);
        sum[j] += x;
      }
    const Words all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    sums[static_cast<size_t>(part) * 8] = all[0] + all[1] + all[2] + all[3];
  });
  uint64_t total = 0;
  for (const uint64_t s : sums) total += s;
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const Status read = bench::read_options(
      argc, argv,
      {bench::count_option("--threads", o.threads), bench::count_option("--rounds", o.rounds),
       bench::isa_option("--isa", o.isa), bench::either_option("--in", "bf16", "f32", o.bf16),
       bench::count_option("--rows", o.rows), bench::count_option("--k", o.k),
       bench::count_option("--n", o.n), bench::count_option("--groups", o.groups)});
  if (!read.ok() || o.k % o.groups != 0) {
    fmt::print(stderr, "{}\n", read.ok() ? "--groups must divide --k" : read.error().message());
    return 2;
  }
  const int64_t bytes = o.k * o.n, item = o.bf16 ? 2 : 4;
  machine::ThreadPool pool(o.threads);
  const auto allocate = [](int64_t size) { return allocate_aligned(static_cast<size_t>(size)); };
  const AlignedBytes w = allocate(bytes), copy = allocate(bytes), wide = allocate(bytes * item),
                     scales = allocate(o.groups * o.n * item), a = allocate(o.rows * o.k * item),
                     c = allocate(o.rows * o.n * item);
  pool.parallel_for(bytes / 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t bits = mixed(static_cast<uint64_t>(i));
      std::memcpy(w.get() + 4 * i, &bits, 4);
    }
  });
  fill_values(wide.get(), bytes, o.bf16, 6);
  fill_values(scales.get(), o.groups * o.n, o.bf16, 12);
  fill_values(a.get(), o.rows * o.k, o.bf16, 1);

  kernels::GemmSpec spec = spec_of(o);
  const kernels::Gemm plain(spec, o.isa);
  spec.int8_b = true;
  for (int64_t i = 0; i < o.k; ++i) spec.s_row.push_back(i / (o.k / o.groups) * o.n);
  spec.s_col = spec.b_col;
  const kernels::Gemm stored(std::move(spec), o.isa);

  uint64_t kept = 0;
  const auto rate = [&](double moved, const auto& work) {
    const double start = kernels::clock_seconds(o.threads);
    work();
    return moved / (kernels::clock_seconds(o.threads) - start) * 1e-9;
  };
  const auto count = static_cast<double>(bytes);
  std::vector<double> copies, reads, int8, others, to_copy, to_read, faster;
  for (int round = -1; round < o.rounds; ++round) {  // the first touches all memory
    const double copied = rate(count, [&] {
      pool.parallel_for(bytes, [&](int64_t begin, int64_t end) {
        std::memcpy(copy.get() + begin, w.get() + begin, static_cast<size_t>(end - begin));
      });
    });
    const double product =
        rate(count, [&] { stored.run(pool, a.get(), kernels::GemmB(w.get(), scales.get()), c.get()); });
    const double reading = rate(count, [&] { kept += read_all(pool, w.get(), bytes); });
    const double other =
        rate(count * static_cast<double>(item), [&] { plain.run(pool, a.get(), wide.get(), c.get()); });
    if (round < 0) continue;
    copies.push_back(copied), reads.push_back(reading), int8.push_back(product), others.push_back(other);
    to_copy.push_back(product / copied), to_read.push_back(product / reading);
    faster.push_back(product / other * static_cast<double>(item));
  }
  fmt::print("{} rows, {} x {}, {} threads, {}, {}; {} bytes read {:x}\n", o.rows, o.k, o.n, o.threads,
             machine::isa_name(o.isa), o.bf16 ? "bf16" : "f32", bytes, kept);
  fmt::print("copy {:.2f} GB/s, read {:.2f} GB/s, int8 product {:.2f} GB/s, the wide product {:.2f} GB/s\n",
             bench::median(copies), bench::median(reads), bench::median(int8), bench::median(others));
  fmt::print(
      "int8 product: {:.2f} of the copy's rate, {:.2f} of the read's; {:.2f} times as fast as the wide one\n",
      bench::median(to_copy), bench::median(to_read), bench::median(faster));
}
