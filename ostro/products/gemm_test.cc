#include "ostro/products/gemm.h"

#include <doctest/doctest.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>

#include "ostro/base/test_size.h"
#include "ostro/numerics/tc16.h"
#include "ostro/products/admission.h"
#include "ostro/products/gemm_reference.h"

namespace ostro::kernels {
namespace {

// Sets N0's environment for the reference.
struct FpEnvironment {
  FpEnvironment() { _mm_setcsr(0x9fc0); }
  ~FpEnvironment() { _mm_setcsr(before); }
  unsigned before = _mm_getcsr();
};

struct GemmRandom {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  // Finite; one in four small enough that products underflow, denormal or a signed zero.
  float value() {
    const uint64_t r = next();
    const uint32_t sign = static_cast<uint32_t>(r & 1) << 31,
                   mantissa = static_cast<uint32_t>(r >> 8) & 0x7fffff;
    const int kind = static_cast<int>(r >> 40 & 31);
    uint32_t exponent = 120 + static_cast<uint32_t>(r >> 48 & 7);
    if (kind < 5) exponent = 60 + static_cast<uint32_t>(r >> 48 & 7);  // products near 2^-126
    if (kind == 5) exponent = 0;                                       // denormal
    if (kind == 6) return std::bit_cast<float>(sign);
    return std::bit_cast<float>(sign | exponent << 23 | mantissa);
  }
};

// How a matrix lies in memory: which index is contiguous, or neither. kRowsApart: contiguous rows that are
// not equally far apart. kPanels16, kPanels32: so many neighbouring columns of all rows, then the next ones.
enum class Layout { kRows, kColumns, kPermuted, kRuns, kRowsApart, kPanels16, kPanels32 };

// Offsets of `rows` x `columns` distinct elements; the number of elements they span.
int64_t lay_out(Layout layout, int64_t rows, int64_t columns, GemmRandom& random, std::vector<int64_t>& row,
                std::vector<int64_t>& column) {
  row.resize(rows);
  column.resize(columns);
  std::iota(row.begin(), row.end(), 0);
  std::iota(column.begin(), column.end(), 0);
  const auto shuffle = [&](std::vector<int64_t>& list) {
    for (int64_t i = static_cast<int64_t>(list.size()); i > 1; --i)
      std::swap(list[i - 1], list[random.below(i)]);
  };
  if (layout == Layout::kPermuted || layout == Layout::kRowsApart) shuffle(row);
  if (layout == Layout::kPermuted) shuffle(column);
  if (layout == Layout::kRuns) {  // runs of up to 40, with gaps, in either index
    int64_t at = 0;
    for (int64_t i = 0; i < columns; ++i) column[i] = at, at += random.below(40) == 0 ? 5 : 1;
    const int64_t stride = at + 3;
    for (int64_t& r : row) r *= stride;
    return rows * stride + 16;
  }
  if (layout == Layout::kPanels16 || layout == Layout::kPanels32) {
    const int64_t width = layout == Layout::kPanels16 ? 16 : 32;
    for (int64_t& c : column) c = c / width * (rows + 1) * width + c % width;
    for (int64_t& r : row) r *= width;
    return (columns / width + 1) * (rows + 1) * width;
  }
  if (layout == Layout::kColumns) {
    for (int64_t& c : column) c *= rows + 1;
    return columns * (rows + 1) + 16;
  }
  for (int64_t& r : row) r *= columns + 2;
  return rows * (columns + 2) + 16;
}

struct GemmCase {
  GemmSpec spec;
  std::vector<float> a, b;
  std::vector<uint16_t> a16, b16;
  int64_t c_size = 0;

  const void* a_data() const {
    return spec.in == GemmType::kF32 ? static_cast<const void*>(a.data()) : a16.data();
  }
  const void* b_data() const {
    return spec.in == GemmType::kF32 ? static_cast<const void*>(b.data()) : b16.data();
  }
};

struct Options {
  int64_t m, n, k;
  GemmType in, out = GemmType::kF32;
  Layout a = Layout::kRows, b = Layout::kRows, c = Layout::kRows;
  int64_t batch = 1;
  std::vector<int64_t> ends, trees;
  bool tc16 = false;
};

GemmCase make_case(const Options& o, GemmRandom& random) {
  GemmCase result;
  GemmSpec& spec = result.spec;
  spec.in = o.in;
  spec.out = o.out;
  spec.tc16 = o.tc16;
  spec.segment_ends = o.ends;
  spec.tree_counts = o.trees;
  const int64_t a_size = lay_out(o.a, o.m, o.k, random, spec.a_row, spec.a_col);
  const int64_t b_size = lay_out(o.b, o.k, o.n, random, spec.b_row, spec.b_col);
  const int64_t c_size = lay_out(o.c, o.m, o.n, random, spec.c_row, spec.c_col);
  spec.batch.clear();
  for (int64_t i = 0; i < o.batch; ++i) spec.batch.push_back({i * a_size, i % 3 / 2 * b_size, i * c_size});
  result.c_size = c_size * o.batch;
  for (int64_t i = 0; i < a_size * o.batch; ++i) result.a.push_back(random.value());
  for (int64_t i = 0; i < b_size * 2; ++i) result.b.push_back(random.value());
  for (float x : result.a) result.a16.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16));
  for (float x : result.b) result.b16.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16));
  return result;
}

constexpr uint8_t kUntouched = 0xa5;

// The whole of C by the definition, in bytes; elements the product does not own keep kUntouched.
std::vector<uint8_t> expected(const GemmCase& c, int64_t group = 32, bool one_chain = false) {
  const FpEnvironment environment;
  const GemmSpec& s = c.spec;
  const int64_t element = s.out == GemmType::kF32 ? 4 : 2;
  std::vector<uint8_t> out(c.c_size * element, kUntouched);
  std::vector<int64_t> ends = s.segment_ends, counts = s.tree_counts;
  if (ends.empty() || one_chain) ends = {static_cast<int64_t>(s.a_col.size())};
  if (counts.empty() || one_chain) counts = {static_cast<int64_t>(ends.size())};
  for (const GemmBatch& batch : s.batch) {
    for (size_t i = 0; i < s.a_row.size(); ++i) {
      for (size_t j = 0; j < s.b_col.size(); ++j) {
        std::vector<float> partials;
        int64_t begin = 0;
        const auto a_at = [&](int64_t k) { return batch.a + s.a_row[i] + s.a_col[k]; };
        const auto b_at = [&](int64_t k) { return batch.b + s.b_row[k] + s.b_col[j]; };
        for (int64_t end : ends) {
          const auto left = [&](int64_t k) { return numerics::Bf16{c.a16[a_at(begin + k)]}; };
          const auto right = [&](int64_t k) { return numerics::Bf16{c.b16[b_at(begin + k)]}; };
          partials.push_back(s.tc16 ? numerics::dot_tc16(end - begin, left, right)
                             : s.in == GemmType::kF32
                                 ? reference::dot_f32([&](int64_t k) { return c.a[a_at(k)]; },
                                                      [&](int64_t k) { return c.b[b_at(k)]; }, begin, end)
                                 : reference::dot_bf16([&](int64_t k) { return c.a16[a_at(k)]; },
                                                       [&](int64_t k) { return c.b16[b_at(k)]; }, begin, end,
                                                       group));
          begin = end;
        }
        const float value = reference::nested_tree(partials, counts);
        const int64_t at = batch.c + s.c_row[i] + s.c_col[j];
        const uint16_t rounded = reference::round_bf16(value);
        if (s.out == GemmType::kF32) {
          std::memcpy(out.data() + at * 4, &value, 4);
        } else {
          std::memcpy(out.data() + at * 2, &rounded, 2);
        }
      }
    }
  }
  return out;
}

machine::ThreadPool& pool_of(int threads) {
  static std::map<int, std::unique_ptr<machine::ThreadPool>> pools;
  auto& pool = pools[threads];
  if (!pool) pool = std::make_unique<machine::ThreadPool>(threads);
  return *pool;
}

std::vector<uint8_t> computed(const GemmCase& c, machine::Isa isa, int threads, bool prepacked) {
  const Gemm gemm(c.spec, isa);
  std::vector<uint8_t> out(c.c_size * (c.spec.out == GemmType::kF32 ? 4 : 2), kUntouched);
  machine::ThreadPool& pool = pool_of(threads);
  if (prepacked) {
    PackedB packed;
    gemm.pack_b(pool, c.b_data(), packed);
    gemm.run(pool, c.a_data(), packed, out.data());
  } else {
    gemm.run(pool, c.a_data(), c.b_data(), out.data());
  }
  return out;
}

void check_all(const Options& options, uint64_t seed) {
  GemmRandom random{seed};
  const GemmCase c = make_case(options, random);
  const std::vector<uint8_t> want = expected(c);
  const int thread_counts[] = {1, 2, 5};
  int turn = static_cast<int>(seed % 6);
  for (machine::Isa isa : machine::available_isas()) {
    const int threads = thread_counts[++turn % 3];
    const bool prepacked = turn / 3 % 2 == 0;
    const bool equal = computed(c, isa, threads, prepacked) == want;
    INFO(std::string(machine::isa_name(isa)), " m ", options.m, " n ", options.n, " k ", options.k, " in ",
         static_cast<int>(options.in), " out ", static_cast<int>(options.out), " layouts ",
         static_cast<int>(options.a), static_cast<int>(options.b), static_cast<int>(options.c), " batch ",
         options.batch, " leaves ", options.ends.size(), " threads ", threads, " prepacked ", prepacked);
    CHECK(equal);
  }
}

constexpr Layout kLayouts[] = {Layout::kRows, Layout::kColumns, Layout::kPermuted, Layout::kRuns};
constexpr GemmType kTypes[] = {GemmType::kF32, GemmType::kBf16};

void check_random(int cases, int64_t largest, uint64_t seed) {
  GemmRandom random{seed};
  for (int i = 0; i < cases; ++i) {
    Options o{.m = 1 + random.below(largest),
              .n = 1 + random.below(largest),
              .k = random.below(largest + 1),
              .in = kTypes[random.below(2)]};
    o.out = kTypes[random.below(2)];
    o.a = kLayouts[random.below(4)], o.b = kLayouts[random.below(4)], o.c = kLayouts[random.below(4)];
    o.batch = random.below(4) == 0 ? 1 + random.below(5) : 1;
    o.tc16 = o.in == GemmType::kBf16 && random.below(4) == 0;
    if (random.below(2) == 0) {
      int64_t leaves = 1;
      for (int64_t level = random.below(3); level >= 0; --level) {
        o.trees.push_back(1 + random.below(4));
        leaves *= o.trees.back();
      }
      for (int64_t l = 1; l < leaves; ++l) o.ends.push_back(random.below(o.k + 1));
      o.ends.push_back(o.k);
      std::sort(o.ends.begin(), o.ends.end());
    }
    check_all(o, random.next());
  }
}

TEST_CASE("gemm: every instruction set equals the definition on ragged shapes, layouts, leaves and batches") {
  check_random(400, 70, 1);
}

TEST_CASE("gemm: single rows and columns") {
  for (int64_t m : {1, 2, 5, 16, 17}) {
    for (int64_t n : {1, 31, 33, 130}) {
      for (GemmType in : kTypes) {
        check_all({.m = m, .n = n, .k = 65, .in = in}, 7 * m + n);
        check_all({.m = n, .n = m, .k = 33, .in = in, .out = GemmType::kBf16, .a = Layout::kColumns}, m + n);
      }
    }
  }
}

// Products of 1 to 17 rows whose B has contiguous columns, or contiguous steps, with odd sizes, leaves and
// results apart; as far as they have few rows, B is read where it lies.
std::vector<Options> few_rows(int64_t m) {
  std::vector<Options> cases;
  for (const GemmType in : kTypes) {
    for (const Layout b : {Layout::kRows, Layout::kColumns}) {
      cases.push_back({.m = m, .n = 95 - m, .k = 30 + 3 * m, .in = in, .b = b});
      cases.push_back(
          {.m = m, .n = 64, .k = 128, .in = in, .out = GemmType::kBf16, .b = b, .c = Layout::kColumns});
      cases.push_back({.m = m,
                       .n = 33,
                       .k = 99,
                       .in = in,
                       .a = Layout::kColumns,
                       .b = b,
                       .c = Layout::kRuns,
                       .ends = {7, 7, 40 + m, 99},
                       .trees = {2, 2}});
    }
    // Several ranges of columns, strips and lines that are read ahead; a last strip that is narrow.
    if (m % 8 == 1) {
      cases.push_back({.m = m, .n = 4100, .k = 41, .in = in});
      cases.push_back({.m = m, .n = 523, .k = 1100, .in = in, .b = Layout::kColumns});
    }
  }
  return cases;
}

// Products whose B is in panels, as some kernel reads them: whole groups and rests, leaves, results apart,
// and more panels than one that are not all of them read together; with many rows a contraction of several
// blocks.
std::vector<Options> rows_of_panels(int64_t m) {
  std::vector<Options> cases;
  for (const GemmType in : kTypes) {
    for (const Layout b : {Layout::kPanels16, Layout::kPanels32}) {
      cases.push_back({.m = m, .n = 96, .k = 30 + m, .in = in, .b = b});
      cases.push_back(
          {.m = m, .n = 352, .k = 64, .in = in, .out = GemmType::kBf16, .b = b, .c = Layout::kColumns});
      cases.push_back({.m = m,
                       .n = 32,
                       .k = 99,
                       .in = in,
                       .a = Layout::kColumns,
                       .b = b,
                       .ends = {7, 7, 40 + m % 50, 99, 99},
                       .trees = {5}});
      if (m > 32) cases.push_back({.m = m, .n = 64, .k = 2048 * 2 + 32 * 3 + 5, .in = in, .b = b});
    }
  }
  return cases;
}

TEST_CASE("gemm: few rows, of any number, layout, instruction set and number of threads") {
  std::vector<int64_t> rows = {47, 48, 49, 63, 64, 65};
  for (int64_t m = 1; m <= 33; ++m) rows.push_back(m);
  for (const int64_t m : rows) {
    std::vector<Options> cases = rows_of_panels(m);
    if (m <= 17)
      for (Options& o : few_rows(m)) cases.push_back(std::move(o));
    for (const Options& o : cases) {
      GemmRandom random{static_cast<uint64_t>(m)};
      const GemmCase c = make_case(o, random);
      const std::vector<uint8_t> want = expected(c);
      for (machine::Isa isa : machine::available_isas()) {
        for (const int threads : {1, 2, 5}) {
          INFO(std::string(machine::isa_name(isa)), " m ", m, " n ", o.n, " k ", o.k, " in ",
               static_cast<int>(o.in), " layout ", static_cast<int>(o.b), " threads ", threads);
          CHECK((computed(c, isa, threads, false) == want));
        }
      }
    }
  }
}

TEST_CASE("gemm: few rows: the tests can tell a wrong order, and every element counts") {
  GemmRandom random{6};
  for (const Layout b : {Layout::kRows, Layout::kColumns, Layout::kPanels16, Layout::kPanels32}) {
    const int64_t n = b == Layout::kRows || b == Layout::kColumns ? 65 : 96;
    const int64_t m = n == 96 ? 49 : 3;
    GemmCase c = make_case({.m = m, .n = n, .k = 75, .in = GemmType::kBf16, .b = b}, random);
    for (uint16_t& x : c.a16) x = static_cast<uint16_t>(0x3f80 | (x & 0x7f));  // no zeros, nothing tiny
    for (uint16_t& x : c.b16) x = static_cast<uint16_t>(0x3c00 | (random.next() & 0x3ff));
    for (machine::Isa isa : machine::available_isas()) {
      const std::vector<uint8_t> got = computed(c, isa, 2, false);
      CHECK(got == expected(c));
      CHECK(got != expected(c, 16));
      CHECK(got != expected(c, 64));
      for (const int64_t k : {0, 31, 64, 74}) {
        for (const int64_t n : {0, 31, 64}) {
          GemmCase changed = c;
          changed.b16[c.spec.b_row[k] + c.spec.b_col[n]] ^= 0x8000;
          CHECK(computed(changed, isa, 2, false) != got);
        }
      }
    }
  }
}

TEST_CASE("gemm: more than one block in every direction") {
  for (GemmType in : kTypes) {
    check_all({.m = 600, .n = 70, .k = 100, .in = in}, 11);
    check_all({.m = 65, .n = 130, .k = 1100, .in = in, .b = Layout::kColumns}, 12);
    check_all({.m = 40, .n = 700, .k = 90, .in = in, .out = GemmType::kBf16, .a = Layout::kColumns}, 13);
    check_all({.m = 70, .n = 90, .k = 1500, .in = in, .ends = {0, 700, 700, 1301, 1500}, .trees = {5}}, 14);
    check_all({.m = 10, .n = 33, .k = 9000, .in = in}, 15);
    // Several groups of columns, with A kept packed, and a last group that is narrower.
    check_all({.m = 70, .n = 2090, .k = 300, .in = in, .out = GemmType::kBf16}, 17);
    check_all({.m = 75, .n = 1130, .k = 770, .in = in, .a = Layout::kColumns}, 18);
    check_all({.m = 300, .n = 1100, .k = 65, .in = in, .a = Layout::kRuns, .b = Layout::kRuns}, 19);
    check_all({.m = 80, .n = 70, .k = 600, .in = in, .a = Layout::kRowsApart}, 20);
  }
}

TEST_CASE("gemm: panels of a long contraction lie span by span") {
  GemmRandom random{51};
  for (GemmType in : kTypes) {
    const Options cases[] = {
        // A packed across: two blocks in a span; kept whole for two groups of columns.
        {.m = 70, .n = 60, .k = 700, .in = in, .a = Layout::kColumns},
        {.m = 420, .n = 400, .k = 1100, .in = in, .a = Layout::kColumns},
        // Different Bs, and more than one task that packs each.
        {.m = 40, .n = 300, .k = 1100, .in = in, .b = Layout::kColumns, .batch = 4},
        {.m = 100, .n = 120, .k = 1000, .in = in, .a = Layout::kColumns, .b = Layout::kRuns, .batch = 3}};
    for (const Options& o : cases) {
      const GemmCase c = make_case(o, random);
      const std::vector<uint8_t> want = expected(c);
      for (machine::Isa isa : machine::available_isas()) {
        for (const bool prepacked : {false, true}) {
          INFO(std::string(machine::isa_name(isa)), " m ", o.m, " n ", o.n, " k ", o.k, " prepacked ",
               prepacked);
          CHECK((computed(c, isa, 1, prepacked) == want));
          CHECK((computed(c, isa, 2, prepacked) == want));
        }
      }
    }
  }
}

TEST_CASE("gemm: B larger than A is packed group by group") {
  for (GemmType in : kTypes) {
    for (Layout layout : {Layout::kRows, Layout::kColumns, Layout::kRuns}) {
      check_all({.m = 45, .n = 1500, .k = 333, .in = in, .a = layout, .b = Layout::kRows}, 31);
      check_all({.m = 33, .n = 700, .k = 900, .in = in, .out = GemmType::kBf16, .b = layout}, 32);
      check_all({.m = 20,
                 .n = 430,
                 .k = 999,
                 .in = in,
                 .a = layout,
                 .b = layout,
                 .ends = {100, 100, 900, 999},
                 .trees = {2, 2}},
                33);
    }
  }
}

TEST_CASE("gemm: results larger than the caches are written past them") {
  check_all({.m = 1100, .n = 1028, .k = 3, .in = GemmType::kF32}, 21);
  check_all({.m = 2100, .n = 1028, .k = 3, .in = GemmType::kBf16, .out = GemmType::kBf16}, 22);
}

TEST_CASE("slow: gemm: many more shapes") {
  const uint64_t drawn = sized<uint64_t>(test_seed(), 0, 0);
  MESSAGE("seeds ", 2 + drawn, " and ", 3 + drawn);
  check_random(sized(800, 4000, 4000), 70, 2 + drawn);
  check_random(sized(12, 60, 60), 400, 3 + drawn);
  for (GemmType in : kTypes) check_all({.m = 1000, .n = 300, .k = 2100, .in = in}, 16);
  // A B that is packed in more than one chunk, of which the products of a batch share each.
  check_all({.m = 2, .n = 15600, .k = 1100, .in = GemmType::kF32, .batch = 2}, 2);
  check_all({.m = 2, .n = 15600, .k = 1100, .in = GemmType::kF32, .b = Layout::kColumns, .batch = 2}, 3);
}

TEST_CASE("gemm: the tests can tell a wrong order") {
  GemmRandom random{5};
  const GemmCase c = make_case({.m = 20, .n = 20, .k = 200, .in = GemmType::kBf16}, random);
  CHECK(expected(c) != expected(c, 16));
  CHECK(expected(c) != expected(c, 64));
  Options leaves{.m = 20, .n = 20, .k = 200, .in = GemmType::kF32, .ends = {50, 100, 150, 200}, .trees = {4}};
  const GemmCase split = make_case(leaves, random);
  CHECK(expected(split) != expected(split, 32, true));
  GemmCase nested = split;
  nested.spec.tree_counts = {3};
  nested.spec.segment_ends = {50, 100, 200};
  CHECK(expected(split) != expected(nested));
  // One bit of one operand reaches the result.
  GemmCase flipped = c;
  flipped.a16[flipped.spec.a_row[3] + flipped.spec.a_col[7]] ^= 0x40;
  for (machine::Isa isa : machine::available_isas())
    CHECK(computed(c, isa, 1, false) != computed(flipped, isa, 1, false));
}

// The product in pieces of the contraction, each going on from what the ones before it left in C.
std::vector<uint8_t> in_pieces(const GemmCase& c, machine::Isa isa, int threads, int64_t piece) {
  const int64_t k = static_cast<int64_t>(c.spec.a_col.size());
  std::vector<uint8_t> out(c.c_size * 4, kUntouched);
  for (int64_t at = 0; at < k; at += piece) {
    GemmSpec part = c.spec;
    const int64_t end = std::min(k, at + piece);
    part.a_col.assign(c.spec.a_col.begin() + at, c.spec.a_col.begin() + end);
    part.b_row.assign(c.spec.b_row.begin() + at, c.spec.b_row.begin() + end);
    Gemm(part, isa).run(pool_of(threads), c.a_data(), c.b_data(), out.data(), at > 0);
  }
  return out;
}

TEST_CASE("gemm: a contraction in pieces that go on from the result") {
  GemmRandom random{41};
  for (GemmType in : kTypes) {
    for (int i = 0; i < 40; ++i) {
      // Small ones of every layout, and some of several blocks, groups and streamed rows.
      const bool large = i % 10 == 9;
      const Options o{.m = large ? 300 : 1 + random.below(60),
                      .n = large ? 20 + random.below(1100) : 1 + random.below(90),
                      .k = large ? 400 + random.below(1300) : 1 + random.below(300),
                      .in = in,
                      .a = kLayouts[random.below(4)],
                      .b = kLayouts[random.below(4)],
                      .c = kLayouts[random.below(4)],
                      .tc16 = in == GemmType::kBf16 && !large && i % 3 == 0};
      const GemmCase c = make_case(o, random);
      const std::vector<uint8_t> want = expected(c);
      const int64_t piece = large ? 416 + i / 10 % 2 * 416 : 32 * (1 + random.below(4));  // one span, or two
      for (machine::Isa isa : machine::available_isas()) {
        INFO(std::string(machine::isa_name(isa)), " m ", o.m, " n ", o.n, " k ", o.k, " piece ", piece);
        CHECK((in_pieces(c, isa, 1 + i % 2, piece) == want));
      }
    }
  }
  // In bf16 a piece that ends inside a group of 32 gives other bits.
  const GemmCase c = make_case({.m = 9, .n = 9, .k = 96, .in = GemmType::kBf16}, random);
  for (machine::Isa isa : machine::available_isas()) CHECK((in_pieces(c, isa, 1, 40) != expected(c)));
}

TEST_CASE("gemm: a matrix times its own transpose, of which half is computed") {
  GemmRandom random{43};
  for (int i = 0; i < 24; ++i) {
    const int64_t n = i % 6 == 5 ? 20 : 64 + random.below(150), k = 1 + random.below(i % 4 == 3 ? 1500 : 120);
    Options o{.m = n, .n = n, .k = k, .in = kTypes[i % 2], .out = kTypes[i / 2 % 2]};
    o.a = kLayouts[random.below(4)], o.c = kLayouts[random.below(4)];
    o.batch = 1 + random.below(3);
    if (i % 5 == 4) o.ends = {k / 3, k};
    o.tc16 = o.in == GemmType::kBf16 && i % 8 == 1;
    GemmCase c = make_case(o, random);
    c.spec.b_row = c.spec.a_col, c.spec.b_col = c.spec.a_row;
    for (GemmBatch& one : c.spec.batch) one.b = one.a;
    c.b = c.a, c.b16 = c.a16;
    const std::vector<uint8_t> want = expected(c);
    for (machine::Isa isa : machine::available_isas()) {
      std::vector<uint8_t> got(want.size(), kUntouched);
      const Gemm gemm(c.spec, isa);
      gemm.run(pool_of(1 + i % 3), c.a_data(), c.a_data(), got.data());
      INFO(std::string(machine::isa_name(isa)), " n ", n, " k ", k, " batch ", o.batch);
      CHECK(got == want);
      // Equal values in another place are no reason to compute half.
      CHECK(computed(c, isa, 2, false) == want);
    }
  }
}

TEST_CASE("gemm: every instruction set passes the start-up check") {
  for (machine::Isa isa : machine::available_isas()) CHECK(bf16_admitted(isa));
}

TEST_CASE("gemm: packed B is shared by products of other heights, and its memory is used again") {
  for (machine::Isa isa : machine::available_isas()) {
    for (GemmType in : kTypes) {
      GemmRandom random{9};
      const GemmCase tall = make_case({.m = 50, .n = 40, .k = 70, .in = in}, random);
      GemmCase small = tall;
      small.spec.a_row.resize(3);
      small.spec.c_row.resize(3);
      machine::ThreadPool& pool = pool_of(2);
      const Gemm first(tall.spec, isa), second(small.spec, isa);
      PackedB packed;
      first.pack_b(pool, tall.b_data(), packed);
      first.pack_b(pool, tall.b_data(), packed);
      std::vector<uint8_t> out(small.c_size * 4, kUntouched);
      second.run(pool, small.a_data(), packed, out.data());
      CHECK(out == expected(small));
    }
  }
}

}  // namespace
}  // namespace ostro::kernels
