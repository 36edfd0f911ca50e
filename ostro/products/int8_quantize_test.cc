// quantize_rows, quantize_columns: the bits of N20's definition, at every instruction set and thread count.
#include "ostro/products/int8_quantize.h"

#include <doctest/doctest.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "ostro/products/int8_reference.h"

namespace ostro::kernels {
namespace {

struct QuantizeFpEnvironment {
  QuantizeFpEnvironment() { _mm_setcsr(0x9fc0); }
  ~QuantizeFpEnvironment() { _mm_setcsr(before); }
  unsigned before = _mm_getcsr();
};

uint32_t some_bits(uint64_t i) {
  i = (i + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  i = (i ^ i >> 27) * 0x94d049bb133111ebu;
  return static_cast<uint32_t>(i >> 32 ^ i);
}

// Values of the neighbourhood number `region`: ordinary ones, zeros, denormals beside the smallest numbers,
// the largest, ones with a NaN or an infinity, ones whose largest is at the boundary of 127, halves of a
// step.
float some_value(uint64_t i, uint64_t region) {
  const uint32_t r = some_bits(i), sign = r << 31, mantissa = r >> 9;
  switch (region % 8) {
    case 0: return 0.0f;
    case 1: return std::bit_cast<float>(sign | (r >> 8 & 3) << 23 | mantissa);
    case 2: return std::bit_cast<float>(sign | (251 + (r >> 8) % 4) << 23 | mantissa);
    case 3:
      return (r >> 8) % 200 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                 : std::bit_cast<float>(sign | mantissa | 120u << 23);
    case 4: return (r >> 8) % 200 == 0 ? std::bit_cast<float>(sign | 0x7f800000u) : 1.0f;
    case 5: {
      const float near127[] = {127.0f, std::nextafter(127.0f, 0.0f), 63.5f, 0.5f, 1.5f, 126.5f, -127.0f,
                               -0.5f};
      return std::ldexp(near127[(r >> 8) % 8], static_cast<int>(region / 8 % 7) - 3);
    }
    case 6:  // a block's largest is just beyond 127 steps, if at all
      return std::bit_cast<float>(sign | (127u + (r >> 8) % 7) << 23 |
                                  ((r >> 12) % 2 != 0 ? 0x7e0000u : 0x7e0001u));
    default: return std::bit_cast<float>(sign | (118 + (r >> 8) % 8) << 23 | mantissa);
  }
}

struct QuantizeCase {
  int64_t rows, columns, block;
  bool bf16, dithered, across;  // across: quantize_columns
  std::vector<int64_t> leaf_ends = {};
  int64_t stride_gap = 0;
  int64_t first_row = 0;
  bool listed = false;  // where rows begin, here and in the whole array, are lists
};

// How many numbers or scales differ from the definition.
int64_t quantize_differences(const QuantizeCase& c, machine::Isa isa, int threads) {
  const QuantizeFpEnvironment environment;
  const int64_t stride = c.columns + c.stride_gap, k = c.across ? c.rows : c.columns;
  const int64_t outer = c.across ? c.columns : c.rows;
  std::vector<float> x(static_cast<size_t>(c.rows * stride));
  std::vector<uint16_t> half(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / stride, column = static_cast<int64_t>(i) % stride;
    const int64_t along = c.across ? row : column, other = c.across ? column : row;
    x[i] = some_value(i, static_cast<uint64_t>(other * 5 + along / c.block));
    half[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(x[i]) >> 16);
    if (std::isnan(x[i])) half[i] |= 0x40;
    if (c.bf16) x[i] = std::bit_cast<float>(static_cast<uint32_t>(half[i]) << 16);
  }
  // The whole array has 10 columns more, and x its columns from 4 on.
  const int64_t step = c.columns + 10;
  std::vector<int64_t> listed(static_cast<size_t>(c.rows));
  for (int64_t i = 0; i < c.rows; ++i)
    listed[static_cast<size_t>(i)] = (c.first_row + (i * 7 + 3) % 1000003) * step + 4;
  const Int8Dither dither = {.key = {0x12345678u, 0x9abcdef0u},
                             .first_of_all = c.first_row * step + 4,
                             .step = step,
                             .first = c.listed ? listed.data() : nullptr};
  // Listed rows lie the other way round in memory.
  std::vector<int64_t> places(static_cast<size_t>(c.rows));
  for (int64_t i = 0; i < c.rows; ++i)
    places[static_cast<size_t>(i)] = (c.listed ? c.rows - 1 - i : i) * stride;
  const Int8Blocks blocks(k, c.block, c.leaf_ends);
  std::vector<int8_t> q(static_cast<size_t>(outer * k), 99);
  std::vector<float> scales(static_cast<size_t>(outer * blocks.count()), 99.0f);
  machine::ThreadPool pool(threads);
  (c.across ? quantize_columns : quantize_rows)(
      pool, isa,
      {.x = c.bf16 ? static_cast<const void*>(half.data()) : x.data(),
       .type = c.bf16 ? GemmType::kBf16 : GemmType::kF32,
       .rows = c.rows,
       .columns = c.columns,
       .stride = stride,
       .dither = c.dithered ? &dither : nullptr,
       .row_at = c.listed ? places.data() : nullptr},
      blocks, {q.data(), k, scales.data(), blocks.count()});
  int64_t wrong = 0;
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t b = 0; b < blocks.count(); ++b) {
      const Int8Blocks::Block& block = blocks.blocks()[static_cast<size_t>(b)];
      std::vector<float> values;
      std::vector<uint32_t> dither_bits;
      for (int64_t j = block.begin; j < block.begin + block.count; ++j) {
        const int64_t row = c.across ? j : i, column = c.across ? i : j;
        values.push_back(x[static_cast<size_t>(places[static_cast<size_t>(row)] + column)]);
        const int64_t first = c.listed ? listed[static_cast<size_t>(row)] : (c.first_row + row) * step + 4;
        if (c.dithered)
          dither_bits.push_back(reference::dither_of(dither.key, static_cast<uint64_t>(first + column)));
      }
      const reference::QuantizedBlock want = reference::quantize_block(values, dither_bits);
      const float scale = scales[static_cast<size_t>(i * blocks.count() + b)];
      wrong += std::isnan(want.scale) ? !std::isnan(scale)
                                      : std::bit_cast<uint32_t>(scale) != std::bit_cast<uint32_t>(want.scale);
      for (int64_t j = 0; j < block.count; ++j)
        wrong += q[static_cast<size_t>(i * k + block.begin + j)] != want.q[static_cast<size_t>(j)];
    }
  return wrong;
}

TEST_CASE("quantised blocks have the bits of the definition") {
  for (const machine::Isa isa : machine::available_isas())
    for (const bool bf16 : {false, true})
      for (const bool dithered : {false, true})
        for (const bool across : {false, true})
          for (const int64_t k : {1, 63, 256, 261, 700}) {
            const int64_t outer = k == 261 ? 70 : 41;
            const QuantizeCase c{.rows = across ? k : outer,
                                 .columns = across ? outer : k,
                                 .block = k == 700 ? 128 : 256,
                                 .bf16 = bf16,
                                 .dithered = dithered,
                                 .across = across,
                                 .stride_gap = k % 3};
            CHECK_MESSAGE(quantize_differences(c, isa, static_cast<int>(k % 3) + 1) == 0,
                          machine::isa_name(isa), " ", k, " bf16 ", bf16, " dithered ", dithered, " across ",
                          across);
          }
}

TEST_CASE("blocks begin again at each leaf") {
  for (const machine::Isa isa : machine::available_isas())
    for (const bool across : {false, true}) {
      const int64_t k = 300, outer = 20;
      QuantizeCase c{.rows = across ? k : outer,
                     .columns = across ? outer : k,
                     .block = 64,
                     .bf16 = true,
                     .dithered = true,
                     .across = across};
      c.leaf_ends = {100, 100, 292, 300};
      CHECK(quantize_differences(c, isa, 2) == 0);
    }
}

// 101 columns in all: rows begin anywhere in a block of threefry. Row 20 crosses 2^32, where an index has
// more than 32 bits, or 2^34, where the number of a block has.
TEST_CASE("draws belong to global indices, also of listed rows and across 2^32 and 2^34") {
  for (const machine::Isa isa : machine::available_isas())
    for (const bool across : {false, true})
      for (const bool listed : {false, true})
        for (const int bits : {32, 34})
          for (const int threads : {1, 3}) {
            QuantizeCase c{
                .rows = 50, .columns = 91, .block = 33, .bf16 = false, .dithered = true, .across = across};
            c.first_row = (int64_t{1} << bits) / 101 - 20;
            c.listed = listed;
            CHECK(quantize_differences(c, isa, threads) == 0);
          }
}

// Blocks of 1 to 9 elements, each beginning at every quarter: an element has its own bits in all of them.
TEST_CASE("a block may begin and end in the middle of a draw") {
  for (const machine::Isa isa : machine::available_isas())
    for (const bool across : {false, true})
      for (int64_t block = 1; block <= 9; ++block) {
        const QuantizeCase c{
            .rows = 23, .columns = 19, .block = block, .bf16 = true, .dithered = true, .across = across};
        CHECK(quantize_differences(c, isa, 3) == 0);
      }
}

// The definition itself, by figures worked out by hand.
TEST_CASE("scales and numbers of some blocks") {
  const QuantizeFpEnvironment environment;
  const auto block = [](std::vector<float> x, std::vector<uint32_t> dither = {}) {
    return reference::quantize_block(x, dither);
  };
  CHECK(block({1.0f, -0.5f}).scale == 0x1p-6f);
  CHECK(block({1.0f, -0.5f, 0x1p-7f, 0x1.8p-6f}).q == std::vector<int8_t>{64, -32, 0, 2});  // ties to even
  CHECK(block({127.0f / 64}).scale == 0x1p-6f);
  CHECK(block({127.0f / 64}).q[0] == 127);
  CHECK(block({std::nextafter(127.0f / 64, 2.0f)}).scale == 0x1p-5f);
  CHECK(block({std::nextafter(-127.0f / 64, -2.0f)}).q[0] == -64);
  CHECK(block({0x1p-126f}).scale == 0x1p-126f);
  CHECK(block({0x1p-126f}).q[0] == 1);
  CHECK(block({0x1p-127f}).scale == 0.0f);
  CHECK(block({std::numeric_limits<float>::max()}).scale == 0x1p122f);
  CHECK(block({std::numeric_limits<float>::max()}).q[0] == 64);
  CHECK(std::isnan(block({1.0f, std::numeric_limits<float>::infinity()}).scale));
  // u is never 0 and never 1: whole numbers stay.
  CHECK(block({1.0f, -1.0f}, {0, 0xffff}).q == std::vector<int8_t>{64, -64});
  CHECK(block({1.0f, 0x1p-7f}, {0, 0x7fff}).q[1] == 0);
  CHECK(block({1.0f, 0x1p-7f}, {0, 0x8000}).q[1] == 1);
}

// Over many draws the mean of the dithered number is the number, in each quarter of a block of threefry.
TEST_CASE("dithered numbers have no bias") {
  const QuantizeFpEnvironment environment;
  const int64_t rows = 64, columns = 1024;
  std::vector<float> x(static_cast<size_t>(rows * columns), 0.3f * 0x1p-6f);
  for (int64_t i = 0; i < rows; ++i) x[static_cast<size_t>(i * columns)] = 1.0f;
  const Int8Dither dither = {.key = {7, 8}, .step = columns};
  const Int8Blocks blocks(columns, 1024);
  std::vector<int8_t> q(x.size());
  std::vector<float> scales(static_cast<size_t>(rows));
  machine::ThreadPool pool(1);
  quantize_rows(pool, machine::Isa::kGeneric, {x.data(), GemmType::kF32, rows, columns, columns, &dither},
                blocks, {q.data(), columns, scales.data(), 1});
  int64_t ones[4] = {};
  for (size_t i = 0; i < q.size(); ++i) ones[i % 4] += q[i] == 1;
  for (int i = 0; i < 4; ++i) {
    const double share = static_cast<double>(ones[i]) / static_cast<double>(rows * (columns / 4 - (i == 0)));
    CHECK(share > 0.28);  // 0.3 within five standard deviations of 16,320 draws
    CHECK(share < 0.32);
  }
}

}  // namespace
}  // namespace ostro::kernels
