// Int8Dot: the bits of N20's definition for every kernel, shape, thread count and way to hand over operands.
#include "ostro/products/int8_dot.h"

#include <doctest/doctest.h>
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "ostro/products/gemm_reference.h"
#include "ostro/products/int8_admission.h"
#include "ostro/products/int8_reference.h"
#include "ostro/products/kernels/dot8_kernel.h"

namespace ostro::kernels {
namespace {

struct DotFpEnvironment {
  DotFpEnvironment() { _mm_setcsr(0x9fc0); }
  ~DotFpEnvironment() { _mm_setcsr(before); }
  unsigned before = _mm_getcsr();
};

uint32_t dot_bits(uint64_t i) {
  i = (i + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  i = (i ^ i >> 27) * 0x94d049bb133111ebu;
  return static_cast<uint32_t>(i >> 32 ^ i);
}

enum class DotScales { kUsual, kExtreme };

// An operand with its memory: rows of k numbers, of which some rows are all 127 or -127 or zero.
struct DotOperand {
  DotOperand(int64_t rows, const Int8Blocks& blocks, DotScales kind, uint64_t seed)
      : k(blocks.k() + 3), count(blocks.count() + 1) {
    q.resize(static_cast<size_t>(rows * k + 1));
    scales.resize(static_cast<size_t>(rows * count + 1));
    for (size_t i = 0; i < q.size(); ++i) {
      const uint32_t r = dot_bits(seed + i);
      const auto row = static_cast<int64_t>(i) / k;
      const int value[] = {127, -127, 0};
      q[i] = static_cast<int8_t>(row % 11 < 3 ? value[row % 11] : static_cast<int>(r % 255) - 127);
    }
    for (size_t i = 0; i < scales.size(); ++i) {
      const uint32_t r = dot_bits(seed + 77777 + i);
      scales[i] = std::bit_cast<float>((110 + r % 20) << 23);
      if (kind == DotScales::kExtreme && r >> 8 & 1)
        scales[i] = r >> 9 & 1    ? std::bit_cast<float>((1 + (r >> 12) % 249) << 23)
                    : r >> 10 & 1 ? 0.0f
                                  : std::numeric_limits<float>::quiet_NaN();
    }
  }
  Int8Operand view() const { return {q.data(), k, scales.data(), count}; }

  int64_t k, count;
  std::vector<int8_t> q;
  std::vector<float> scales;
};

float dot_expected(const DotOperand& a, const DotOperand& b, const Int8Blocks& blocks,
                   const std::vector<int64_t>& counts, int64_t i, int64_t j) {
  std::vector<float> partials;
  for (int64_t leaf = 0; leaf < blocks.leaves(); ++leaf) {
    const int64_t first = blocks.leaf_begin(leaf), last = blocks.leaf_begin(leaf + 1);
    const int64_t begin = first == last ? 0 : blocks.blocks()[static_cast<size_t>(first)].begin;
    const int64_t end = first == last ? 0
                                      : blocks.blocks()[static_cast<size_t>(last - 1)].begin +
                                            blocks.blocks()[static_cast<size_t>(last - 1)].count;
    partials.push_back(
        reference::dot_int8([&](int64_t k) { return a.q[static_cast<size_t>(i * a.k + k)]; },
                            [&](int64_t k) { return b.q[static_cast<size_t>(j * b.k + k)]; },
                            [&](int64_t n) { return a.scales[static_cast<size_t>(i * a.count + first + n)]; },
                            [&](int64_t n) { return b.scales[static_cast<size_t>(j * b.count + first + n)]; },
                            begin, end, blocks.block()));
  }
  return reference::nested_tree(std::move(partials), counts);
}

bool same_float(float x, float y) {
  return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) || (std::isnan(x) && std::isnan(y));
}

struct DotCase {
  int64_t m, n, k, block = ir::kInt8Block;
  GemmType out = GemmType::kF32;
  DotScales scales = DotScales::kUsual;
  std::vector<int64_t> leaf_ends = {}, counts = {};
  int64_t gap = 0;
  bool pack_a = false, pack_b = false;
};

// How many outputs differ from the definition, and how many elements beside C were written.
int64_t dot_differences(const DotCase& c, const DotInt8Kernel& kernel, int threads) {
  const DotFpEnvironment environment;
  const Int8Blocks blocks(c.k, c.block, c.leaf_ends);
  const DotOperand a(c.m, blocks, c.scales, 1), b(c.n, blocks, c.scales, 1000000);
  const int64_t stride = c.n + c.gap;
  const Int8Dot dot(
      {.m = c.m, .n = c.n, .blocks = blocks, .tree_counts = c.counts, .out = c.out, .c_stride = stride},
      kernel);
  machine::ThreadPool pool(threads);
  PackedInt8 packed_a, packed_b;
  if (c.pack_a) dot.pack_a(pool, a.view(), packed_a);
  if (c.pack_b) dot.pack_b(pool, b.view(), packed_b);
  std::vector<float> out(static_cast<size_t>(c.m * stride) + 1, 5.0f);
  std::vector<uint16_t> rounded(out.size(), 5);
  const bool bf16 = c.out == GemmType::kBf16;
  dot.run(pool, c.pack_a ? Int8Side(packed_a) : Int8Side(a.view()),
          c.pack_b ? Int8Side(packed_b) : Int8Side(b.view()),
          bf16 ? static_cast<void*>(rounded.data()) : out.data());
  const std::vector<int64_t> counts = c.counts.empty() ? std::vector<int64_t>{blocks.leaves()} : c.counts;
  int64_t wrong = 0;
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < stride; ++j) {
      const auto at = static_cast<size_t>(i * stride + j);
      if (j >= c.n) {
        wrong += bf16 ? rounded[at] != 5 : out[at] != 5.0f;
        continue;
      }
      const float want = dot_expected(a, b, blocks, counts, i, j);
      wrong += bf16
                   ? !same_float(reference::widen(rounded[at]), reference::widen(reference::round_bf16(want)))
                   : !same_float(out[at], want);
    }
  return wrong;
}

TEST_CASE("int8 products have the bits of the definition at every size") {
  for (const DotInt8Kernel* kernel : int8_kernels()) {
    for (const int64_t m : {1, 4, 7, 13, 35})
      for (const int64_t n : {1, 16, 33, 70})
        for (const int64_t k : {1, 3, 66, 257, 600}) {
          const DotCase c{.m = m,
                          .n = n,
                          .k = k,
                          .out = (m + n) % 2 == 0 ? GemmType::kF32 : GemmType::kBf16,
                          .gap = k % 2};
          CHECK_MESSAGE(dot_differences(c, *kernel, static_cast<int>(k % 3) + 1) == 0, kernel->name, " ", m,
                        " x ", n, " x ", k);
        }
    for (const int64_t block : {1, 5, 64, 1040}) {
      const DotCase c{.m = 9, .n = 40, .k = 1100, .block = block};
      CHECK_MESSAGE(dot_differences(c, *kernel, 2) == 0, kernel->name, ", blocks of ", block);
    }
  }
}

TEST_CASE("scales that underflow, overflow, are zero or no number") {
  for (const DotInt8Kernel* kernel : int8_kernels())
    for (const int64_t k : {200, 1000})
      CHECK_MESSAGE(
          dot_differences({.m = 40, .n = 50, .k = k, .scales = DotScales::kExtreme}, *kernel, 2) == 0,
          kernel->name, " ", k);
}

TEST_CASE("leaves of the contraction and their trees") {
  for (const DotInt8Kernel* kernel : int8_kernels()) {
    DotCase c{.m = 20, .n = 40, .k = 500, .block = 64};
    c.leaf_ends = {70, 70, 198, 300, 301, 500};
    CHECK(dot_differences(c, *kernel, 2) == 0);
    c.counts = {2, 3};
    CHECK(dot_differences(c, *kernel, 2) == 0);
    c.counts = {3, 2};
    c.out = GemmType::kBf16;
    CHECK(dot_differences(c, *kernel, 1) == 0);
    CHECK(dot_differences({.m = 3, .n = 4, .k = 0}, *kernel, 1) == 0);
    CHECK(dot_differences({.m = 0, .n = 4, .k = 5}, *kernel, 1) == 0);
  }
}

TEST_CASE("packed operands, and operands of which one alone is packed") {
  for (const DotInt8Kernel* kernel : int8_kernels())
    for (const int which : {1, 2, 3}) {
      DotCase c{.m = 50, .n = 90, .k = 520};
      c.pack_a = (which & 1) != 0, c.pack_b = (which & 2) != 0;
      CHECK_MESSAGE(dot_differences(c, *kernel, 2) == 0, kernel->name, " ", which);
    }
}

TEST_CASE("few rows, whose B is packed where it is read, have the bits of a B that was packed before") {
  const DotFpEnvironment environment;
  machine::ThreadPool pool(3);
  for (const DotInt8Kernel* kernel : int8_kernels())
    for (const int64_t m : {1, 12, 16, 17}) {
      const Int8Blocks blocks(700);
      const int64_t n = 150;
      const DotOperand a(m, blocks, DotScales::kUsual, 1), b(n, blocks, DotScales::kUsual, 1000000);
      std::vector<int64_t> places, others;
      for (int64_t j = 0; j < n; ++j) places.push_back(j * 7 % n), others.push_back(j * 11 % n);
      const Int8Dot dot({.m = m, .n = n, .blocks = blocks}, *kernel);
      const auto run = [&](const Int8Side& right) {
        std::vector<float> c(static_cast<size_t>(m * n));
        dot.run(pool, a.view(), right, c.data());
        return c;
      };
      const auto at = [&](const std::vector<int64_t>& rows) {
        Int8Operand out = b.view();
        out.row_at = rows.data();
        return out;
      };
      PackedInt8 packed;
      dot.pack_b(pool, at(places), packed);
      CHECK(run(at(places)) == run(packed));
      CHECK(run(at(others)) != run(packed));  // the control
    }
}

TEST_CASE("a sum that goes on at the end of a block has the bits of one product") {
  const DotFpEnvironment environment;
  const Int8Blocks whole(600, 64), first(256, 64), second(344, 64);
  const DotOperand a(30, whole, DotScales::kUsual, 3), b(45, whole, DotScales::kUsual, 900);
  machine::ThreadPool pool(2);
  for (const DotInt8Kernel* kernel : int8_kernels()) {
    std::vector<float> once(30 * 45), twice(once.size());
    Int8Dot({.m = 30, .n = 45, .blocks = whole}, *kernel).run(pool, a.view(), b.view(), once.data());
    const auto from = [](const DotOperand& x, int64_t k, int64_t block) {
      return Int8Operand{x.q.data() + k, x.k, x.scales.data() + block, x.count};
    };
    Int8Dot({.m = 30, .n = 45, .blocks = first}, *kernel).run(pool, a.view(), b.view(), twice.data());
    Int8Dot({.m = 30, .n = 45, .blocks = second}, *kernel)
        .run(pool, from(a, 256, 4), from(b, 256, 4), twice.data(), true);
    CHECK(once == twice);
  }
}

TEST_CASE("several products as one job") {
  const DotFpEnvironment environment;
  machine::ThreadPool pool(3);
  for (const DotInt8Kernel* kernel : int8_kernels()) {
    const int64_t sizes[][3] = {{5, 40, 300}, {0, 40, 300}, {70, 33, 100}, {1, 200, 257}};
    std::vector<DotOperand> a, b;
    std::vector<Int8Dot> dots;
    std::vector<std::vector<float>> out;
    for (const auto& [m, n, k] : sizes) {
      const Int8Blocks blocks(k);
      a.emplace_back(m, blocks, DotScales::kUsual, static_cast<uint64_t>(m));
      b.emplace_back(n, blocks, DotScales::kUsual, static_cast<uint64_t>(n) + 5000);
      dots.emplace_back(Int8DotSpec{.m = m, .n = n, .blocks = blocks}, *kernel);
      out.emplace_back(static_cast<size_t>(m * n));
    }
    std::vector<Int8DotCall> calls;
    for (size_t i = 0; i < dots.size(); ++i)
      calls.push_back({&dots[i], a[i].view(), b[i].view(), out[i].data()});
    Int8Dot::run_all(pool, calls);
    for (size_t i = 0; i < dots.size(); ++i) {
      std::vector<float> alone(out[i].size());
      dots[i].run(pool, a[i].view(), b[i].view(), alone.data());
      CHECK(alone == out[i]);
    }
  }
}

TEST_CASE("every kernel here passes the start-up check, and one that errs does not") {
  for (const DotInt8Kernel* kernel : int8_kernels()) CHECK_MESSAGE(int8_admitted(*kernel), kernel->name);
  DotInt8Kernel wrong = dot8_generic();
  wrong.name = "wrong";
  wrong.multiply = [](const Int8Tile& t) {
    dot8_generic().multiply(t);
    t.c[0] = std::nextafter(t.c[0], 1.0f);
  };
  CHECK(int8_difference(wrong) != "");
  for (const machine::Isa isa : machine::available_isas()) CHECK(int8_admitted(int8_kernel(isa)));
}

}  // namespace
}  // namespace ostro::kernels
