// Products of few rows with matrices that lie in memory, beside what memory gives: reading as many bytes in
// eight streams a thread; and the same products with each matrix packed first, as for many rows. Interleaved;
// medians of the rounds. Rates are bytes of the matrices per second; one thread is timed by its own clock,
// which stops while another process has the core.
//
//   few_bench [--threads N] [--isa NAME] [--in f32|bf16|int8] [--columns together|apart|panels] [--rounds N]
//   [--rows N]
//   [--k N]
//   [--n N] [--mib N] [--form text|json]
//
// --columns together: B as [k, n]; apart: as [n, k], as it always is with int8; panels: as [n / p, k, p] with
// p of kernels::panel_columns. --mib: the matrices take at least so much memory in all.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "ostro/base/aligned.h"
#include "ostro/machine/thread_pool.h"
#include "ostro/products/calibrate.h"
#include "ostro/products/gemm.h"
#include "ostro/products/int8_dot.h"

namespace {

using namespace ostro;

struct Options {
  int threads = 1, rounds = 7;
  machine::Isa isa = kernels::best_isa();
  std::string in = "bf16";
  bool text = true;
  std::string columns = "together";
  int64_t rows = 1, k = 768, n = 4096, mib = 256;
};

template <typename F>
double rate(const machine::ThreadPool& pool, int64_t bytes, F&& f) {
  const double begin = kernels::clock_seconds(pool.threads());
  f();
  return 1e-9 * static_cast<double>(bytes) / (kernels::clock_seconds(pool.threads()) - begin);
}

kernels::GemmType spec_type(const Options& o) {
  return o.in == "bf16" ? kernels::GemmType::kBf16 : kernels::GemmType::kF32;
}

kernels::GemmSpec spec_of(const Options& o) {
  kernels::GemmSpec s;
  s.in = spec_type(o);
  for (int64_t i = 0; i < o.rows; ++i) s.a_row.push_back(i * o.k), s.c_row.push_back(i * o.n);
  const int64_t panel = kernels::panel_columns(s.in, o.isa);
  for (int64_t i = 0; i < o.k; ++i) {
    s.a_col.push_back(i);
    s.b_row.push_back(o.columns == "together" ? i * o.n : o.columns == "apart" ? i : i * panel);
  }
  for (int64_t i = 0; i < o.n; ++i) {
    s.b_col.push_back(o.columns == "together" ? i
                      : o.columns == "apart"  ? i * o.k
                                              : i / panel * panel * o.k + i % panel);
    s.c_col.push_back(i);
  }
  return s;
}

// How one matrix is multiplied, with B where it lies and packed first.
struct Products {
  std::function<void(const std::byte* b)> few, packed;
};

Products of_floats(const Options& o, machine::ThreadPool& pool, const std::byte* a, std::byte* c) {
  const auto gemm = std::make_shared<kernels::Gemm>(spec_of(o), o.isa);
  const auto room = std::make_shared<kernels::PackedB>();
  return {[=, &pool](const std::byte* b) { gemm->run(pool, a, b, c); },
          [=, &pool](const std::byte* b) {
            gemm->pack_b(pool, b, *room);
            gemm->run(pool, a, *room, c);
          }};
}

Products of_integers(const Options& o, machine::ThreadPool& pool, const std::byte* a, std::byte* c) {
  const kernels::Int8Blocks blocks(o.k);
  const auto dot = std::make_shared<kernels::Int8Dot>(
      kernels::Int8DotSpec{.m = o.rows, .n = o.n, .blocks = blocks}, o.isa);
  const auto scales =
      std::make_shared<std::vector<float>>(static_cast<size_t>(std::max(o.n, o.rows) * blocks.count()), 1.0F);
  const auto room = std::make_shared<kernels::PackedInt8>();
  const auto side = [=](const std::byte* q) {
    return kernels::Int8Operand{reinterpret_cast<const int8_t*>(q), o.k, scales->data(), blocks.count()};
  };
  return {[=, &pool](const std::byte* b) { dot->run(pool, side(a), side(b), c); },
          [=, &pool](const std::byte* b) {
            dot->pack_b(pool, side(b), *room);
            dot->run(pool, side(a), *room, c);
          }};
}

// The sum of all words, which keeps the reads: eight streams a thread.
uint64_t read_all(machine::ThreadPool& pool, const std::byte* from, int64_t bytes) {
  constexpr int64_t kStreams = 8;
  std::vector<uint64_t> sums(static_cast<size_t>(pool.threads()) * 8);
  const int64_t parts = pool.threads();
  pool.run_tiles(parts, [&](int64_t part) {
    using Words = uint64_t __attribute__((vector_size(32)));
    Words sum[kStreams] = {};
    const int64_t lines = bytes / 64 / parts / kStreams;
    const std::byte* begin = from + part * lines * kStreams * 64;
    for (int64_t i = 0; i < lines; ++i)
      for (int64_t s = 0; s < kStreams; ++s) {
        const std::byte* line = begin + (s * lines + i) * 64;
        __builtin_prefetch(line + 1024);
        Words x, y;
        std::memcpy(&x, line, sizeof x);
        std::memcpy(&y, line + 32, sizeof y);
        sum[s] += x + y;
      }
    for (const Words& s : sum) sums[static_cast<size_t>(part) * 8] += s[0] + s[1] + s[2] + s[3];
  });
  uint64_t all = 0;
  for (const uint64_t s : sums) all += s;
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const Status read = bench::read_options(
      argc, argv,
      {bench::count_option("--threads", o.threads), bench::count_option("--rounds", o.rounds),
       bench::count_option("--rows", o.rows), bench::count_option("--k", o.k),
       bench::count_option("--n", o.n), bench::count_option("--mib", o.mib),
       bench::isa_option("--isa", o.isa),
       bench::Option{"--in", "f32, bf16 or int8",
                     [&](const std::string& value) {
                       o.in = value;
                       return value == "f32" || value == "bf16" || value == "int8";
                     }},
       bench::Option{"--columns", "together, apart or panels",
                     [&](const std::string& value) {
                       o.columns = value;
                       return value == "together" || value == "apart" || value == "panels";
                     }},
       bench::either_option("--form", "text", "json", o.text)});
  if (!read.ok()) {
    fmt::print(stderr, "error: {}\n", read.error().message());
    return 2;
  }
  if (const int64_t panel = kernels::panel_columns(spec_type(o), o.isa);
      o.columns == "panels" && (panel == 0 || o.n % panel != 0)) {
    fmt::print(stderr, "error: --columns panels: {} columns are not whole panels of {} ({})\n", o.n, panel,
               machine::isa_name(o.isa));
    return 2;
  }
  machine::ThreadPool pool(o.threads);
  const int64_t element = o.in == "int8" ? 1 : o.in == "bf16" ? 2 : 4, one = o.k * o.n * element;
  const int64_t count = std::max<int64_t>(1, (o.mib << 20) / one), bytes = count * one;
  const AlignedBytes b = allocate_aligned(static_cast<size_t>(bytes));
  const AlignedBytes a = allocate_zeroed(static_cast<size_t>(o.rows * o.k * 4));
  const AlignedBytes c = allocate_zeroed(static_cast<size_t>(o.rows * o.n * 4));
  // Numbers of usual size: the speed of products does not depend on them, but that of denormal ones may.
  for (int64_t i = 0; i < bytes / 2; ++i) {
    const auto half = static_cast<uint16_t>(0x3f80 | (i * 2654435761u >> 20 & 0x7f));
    std::memcpy(b.get() + 2 * i, &half, 2);
  }
  const Products products =
      o.in == "int8" ? of_integers(o, pool, a.get(), c.get()) : of_floats(o, pool, a.get(), c.get());
  std::vector<double> reads, few, packed;
  uint64_t kept = 0;
  for (int round = 0; round <= o.rounds; ++round) {
    const double r = rate(pool, bytes, [&] { kept += read_all(pool, b.get(), bytes); });
    const double f = rate(pool, bytes, [&] {
      for (int64_t i = 0; i < count; ++i) products.few(b.get() + i * one);
    });
    const double p = rate(pool, bytes, [&] {
      for (int64_t i = 0; i < count; ++i) products.packed(b.get() + i * one);
    });
    if (round == 0) continue;  // the first touches all memory
    reads.push_back(r), few.push_back(f), packed.push_back(p);
  }
  if (kept == 1) fmt::print("\n");  // never; keeps the reads
  const char* form =
      o.text ? "{} {} thread(s), {} rows, [{}] {} x {}: read {:.1f} GB/s, few rows {:.1f}, packed {:.1f}\n"
             : "{{\"isa\": \"{}\", \"threads\": {}, \"rows\": {}, \"type\": \"{}\", \"k\": {}, \"n\": {}, "
               "\"read\": {:.3f}, \"few\": {:.3f}, \"packed\": {:.3f}}}\n";
  fmt::print(fmt::runtime(form), machine::isa_name(o.isa), o.threads, o.rows, o.in, o.k, o.n,
             bench::median(reads), bench::median(few), bench::median(packed));
  return 0;
}
