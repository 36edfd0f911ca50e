// Prints, as JSON of integers (bit patterns), inputs and results of clauses of docs/spec/numerics.md, for
// scripts/check_numerics_clauses.py to derive again from the text. Takes a seed.
#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "ostro/numerics/bf16.h"
#include "ostro/numerics/dots.h"
#include "ostro/numerics/fingerprint.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/int8_blocks.h"
#include "ostro/numerics/int8_slices.h"
#include "ostro/numerics/leaves.h"
#include "ostro/numerics/permutation.h"
#include "ostro/numerics/sums.h"
#include "ostro/numerics/tc16.h"
#include "ostro/numerics/threefry.h"

namespace ostro::numerics {
namespace {

using Numbers = std::vector<uint64_t>;

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

std::string json(const Numbers& x) {
  std::string out = "[";
  for (size_t i = 0; i < x.size(); ++i) out += fmt::format("{}{}", i == 0 ? "" : ", ", x[i]);
  return out + "]";
}

void print(const char* clause, const Numbers& in, const Numbers& in2, const Numbers& out, bool last = false) {
  fmt::print("\"{}\": {{\"in\": {}, \"in2\": {}, \"out\": {}}}{}\n", clause, json(in), json(in2), json(out),
             last ? "" : ",");
}

std::vector<float> values(Key key, size_t n, int spread) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) {
    const int exponent =
        static_cast<int>(random_bits(fold_in(key, "exponent"), i) % static_cast<uint32_t>(2 * spread + 1));
    out[i] = std::ldexp(random_normal(fold_in(key, "value"), i), exponent - spread);
  }
  return out;
}

Numbers patterns(const std::vector<float>& x) {
  Numbers out;
  for (float v : x) out.push_back(bits_of(v));
  return out;
}

// Two rows of 300 numbers, some of them tiny, huge or not finite by block, in blocks of 32: scales, integers
// to nearest and dithered, and the products of nearest with dithered ones. Draws begin in the middle of a
// block of threefry and go across 2^34, where the number of a block has more than 32 bits.
void print_integers(Key key) {
  constexpr int64_t kSize = 300, kBlock = 32, kBlocks = (kSize + kBlock - 1) / kBlock;
  constexpr uint64_t kFirstIndex = (uint64_t{1} << 34) - 149;
  Numbers in, out;
  std::vector<int8_t> q[2];
  std::vector<float> scales[2];
  for (int side = 0; side < 2; ++side) {
    std::vector<float> x = values(fold_in(key, static_cast<uint32_t>(side)), kSize, 5);
    for (int64_t k = 0; k < kSize; ++k) {
      const int64_t block = k / kBlock;
      float& v = x[static_cast<size_t>(k)];
      if (block == 1) v *= 0x1p-125f;
      if (block == 2) v = std::ldexp(v > 0 ? 127.0f : -127.25f, side - 3);
      if (block == 3) v = k % 7 == 0 ? std::bit_cast<float>(0x7f7fffffu) : v * 0x1p100f;
      if (block == 4) v = side == 0 ? 0.0f : std::bit_cast<float>(0x80000001u);
    }
    if (side == 0) x[5 * kBlock] = INFINITY;
    const Numbers bits = patterns(x);
    in.insert(in.end(), bits.begin(), bits.end());
    for (int64_t begin = 0; begin < kSize; begin += kBlock) {
      const int64_t count = std::min(kBlock, kSize - begin);
      const BlockScale s = block_scale(count, [&](int64_t k) { return x[static_cast<size_t>(begin + k)]; });
      scales[side].push_back(s.scale);
      out.push_back(std::isnan(s.scale) ? 0x7fc00000u : bits_of(s.scale));
      for (int64_t k = begin; k < begin + count; ++k) {
        const float v = x[static_cast<size_t>(k)];
        q[side].push_back(
            side == 0 ? quantize_nearest(v, s)
                      : quantize_dithered(v, s, dither_bits(key, kFirstIndex + static_cast<uint64_t>(k))));
        out.push_back(static_cast<uint8_t>(q[side].back()));
      }
    }
  }
  // With the block that is not finite, and of what comes behind it.
  for (const int64_t first : {int64_t{0}, int64_t{6}}) {
    const auto integers = [&](int side) {
      return [&, side](int64_t k) { return q[side][static_cast<size_t>(first * kBlock + k)]; };
    };
    const auto scale = [&](int side) {
      return [&, side](int64_t g) { return scales[side][static_cast<size_t>(first + g)]; };
    };
    for (const int64_t n : {int64_t{0}, int64_t{5}, 3 * kBlock, 4 * kBlock, kSize - first * kBlock}) {
      const float c =
          dot_int8(std::min(n, kSize - first * kBlock), kBlock, integers(0), scale(0), integers(1), scale(1));
      out.push_back(std::isnan(c) ? 0x7fc00000u : bits_of(c));
    }
  }
  print("integers", in, {kBlock, kBlocks, key.word0, key.word1, kFirstIndex}, out);
}

// N21: two rows of 150 numbers by slices, some of them tiny, huge, at the edge of a scale or not finite;
// their slices, and products of rows and parts of them that begin at different values.
void print_slices(Key key) {
  constexpr int64_t kSize = 150, kPart = 30;
  Numbers in, out;
  std::vector<SlicedRow> parts[2];
  for (int side = 0; side < 2; ++side) {
    std::vector<float> x = values(fold_in(key, static_cast<uint32_t>(side)), kSize, 5);
    for (int64_t k = 0; k < kSize; ++k) {
      float& v = x[static_cast<size_t>(k)];
      if (k / kPart == 1) v *= 0x1p-123f;
      if (k / kPart == 2) v = std::ldexp(v > 0 ? 127.0f : -127.25f, side - 3);
      if (k / kPart == 3) v = side == 0 ? std::bit_cast<float>(0x80000001u) : v * 0x1p60f;
    }
    if (side == 1) x[4 * kPart + 7] = NAN;
    const Numbers bits = patterns(x);
    in.insert(in.end(), bits.begin(), bits.end());
    for (int64_t begin = 0; begin < kSize; begin += kPart) {
      parts[side].push_back(slice_row(kPart, [&](int64_t k) { return x[static_cast<size_t>(begin + k)]; }));
      const SlicedRow& row = parts[side].back();
      out.push_back(std::isnan(row.scale) ? 0x7fc00000u : bits_of(row.scale));
      for (const auto* slice : {&row.high, &row.low})
        for (const int8_t q : *slice) out.push_back(static_cast<uint8_t>(q));
    }
  }
  const auto at = [](const std::vector<int8_t>& x) {
    return [&x](int64_t k) { return x[static_cast<size_t>(k)]; };
  };
  for (const SlicedRow& a : parts[0])
    for (const SlicedRow& b : parts[1])
      for (const float from : {0.0f, 1.5f, -0x1p-120f}) {
        const float c =
            dot_slices(kPart, at(a.high), at(a.low), a.scale, at(b.high), at(b.low), b.scale, from);
        out.push_back(std::isnan(c) ? 0x7fc00000u : bits_of(c));
      }
  // A block of a sum: the rows are numbers of the parts of the second side but the last, one of them masked.
  const std::vector<float> factors = {0.75f, -0x1.8p-3f, 0x1.555556p-2f, 1e-3f};
  std::vector<const SlicedRow*> rows;
  for (size_t j = 0; j < 4; ++j) rows.push_back(j == 2 ? nullptr : &parts[1][j]);
  for (const LeftOperand left : {LeftOperand::kRows, LeftOperand::kFactors}) {
    std::vector<float> sum(static_cast<size_t>(kPart), 0.25f);
    add_rows(left, factors, rows, sum);
    for (const float x : sum) out.push_back(bits_of(x));
  }
  print("slices", in, patterns(factors), out);
}

// N23: chains of up to 70 products of each kind of numbers. Of each the operands, then a result for every
// length from 0 on. A NaN is printed as one pattern.
void print_tensor_rule(Key key) {
  constexpr int64_t kLongest = 70, kChains = 28, kKinds = 7;
  Numbers in, in2, out;
  for (int64_t chain = 0; chain < kChains; ++chain) {
    const Key of_chain = fold_in(key, static_cast<uint32_t>(chain));
    const int64_t kind = chain % kKinds;
    std::vector<Bf16> a, b;
    for (int64_t k = 0; k < kLongest; ++k) {
      const auto at = static_cast<uint64_t>(k);
      const uint32_t r = random_bits(fold_in(of_chain, "a"), at), s = random_bits(fold_in(of_chain, "b"), at);
      // Exponent fields from `low` on, of `span` in a row; kind 6 has all bit patterns, as rarely infinite.
      const uint32_t low = kind == 2 ? 46 : kind == 3 ? 0 : kind == 4 ? 187 : kind == 1 ? 97 : 124;
      const uint32_t span = kind == 1 ? 61 : kind == 2 ? 22 : kind == 3 ? 3 : 6;
      const auto drawn = [&](uint32_t x, uint32_t first) {
        return static_cast<uint16_t>((x & 0x807fu) | (first + (x >> 16) % span) << 7);
      };
      uint16_t x = drawn(r, low), y = drawn(s, kind == 3 ? 110 : low);
      if (kind == 6) x = static_cast<uint16_t>(r), y = static_cast<uint16_t>(r % 8 == 0 ? s : s & 0xbfffu);
      if (kind == 5 && k % 2 == 1)
        x = a.back().bits, y = static_cast<uint16_t>(b.back().bits ^ 0x8000u ^ (r % 8 == 0));
      if (r >> 28 == 0) x &= 0x8000u;
      a.push_back({x});
      b.push_back({y});
      in.push_back(x);
      in2.push_back(y);
    }
    for (int64_t n = 0; n <= kLongest; ++n) {
      const float c = dot_tc16(
          n, [&](int64_t k) { return a[static_cast<size_t>(k)]; },
          [&](int64_t k) { return b[static_cast<size_t>(k)]; });
      out.push_back(std::isnan(c) ? 0x7fc00000u : bits_of(c));
    }
  }
  print("tensor_rule", in, in2, out);
}

void print_all(uint64_t seed) {
  const Key key = key_from_seed(seed);
  fmt::print("{{\n");
  {
    Numbers in, out;
    for (uint64_t i = 0; i < 2000; ++i) {
      const uint32_t b = i < 512 ? static_cast<uint32_t>(i) << 23 : random_bits(fold_in(key, "bf16"), i);
      in.push_back(b);
      out.push_back(to_bf16(std::bit_cast<float>(b)).bits);
    }
    print("bf16", in, {}, out);
  }
  const std::vector<float> a = values(fold_in(key, "a"), 333, 6), b = values(fold_in(key, "b"), 333, 6);
  print("striped_sum", patterns(a), {}, {bits_of(striped_sum<float>(std::span<const float>(a)))});
  print("tree", patterns(b), {}, {bits_of(tree_sum<float>(b))});
  const auto at = [](const std::vector<float>& x) {
    return [&x](int64_t k) { return x[static_cast<size_t>(k)]; };
  };
  print("dot_f32", patterns(a), patterns(b), {bits_of(dot_f32(333, at(a), at(b)))});
  // Products around 2^-126, so that flushing is part of the answer.
  for (const char* name : {"dot_bf16", "dot_bf16_tiny"}) {
    const bool tiny = std::string(name) == "dot_bf16_tiny";
    std::vector<float> x, y;
    for (float v : a) x.push_back(round_to_bf16(tiny ? v * 0x1p-60f : v));
    for (float v : b) y.push_back(round_to_bf16(tiny ? v * 0x1p-64f : v));
    Numbers out;
    for (int64_t n : {0, 1, 31, 32, 33, 64, 100, 333}) out.push_back(bits_of(dot_bf16(n, at(x), at(y))));
    print(name, patterns(x), patterns(y), out);
  }
  print_integers(fold_in(key, "integers"));
  print_slices(fold_in(key, "slices"));
  print_tensor_rule(fold_in(key, "tensor_rule"));
  {
    Numbers in, in2, out_e, out_exp;
    const std::vector<float> x = values(fold_in(key, "x"), 600, 7), y = values(fold_in(key, "y"), 600, 3);
    for (size_t i = 0; i < x.size(); ++i) out_e.push_back(bits_of(exp2_block(x[i], y[i], kLog2e)));
    for (float v : x) out_exp.push_back(bits_of(exp_f32(v)));
    print("E", patterns(x), patterns(y), out_e);
    print("exp", patterns(x), {}, out_exp);
  }
  {
    const Key folded = fold_in(fold_in(key, "params"), 7u);
    Numbers out = {folded.word0, folded.word1};
    const uint64_t indices[] = {0, 1, 2, 0xffffffff, 0x100000000, 0x123456789ab};
    for (uint64_t i : indices) out.push_back(random_bits(folded, i));
    for (uint64_t i : indices) out.push_back(bits_of(random_uniform(folded, i)));
    print("threefry", {seed}, Numbers(std::begin(indices), std::end(indices)), out);
  }
  {
    Numbers in, out;
    for (int64_t n : {1, 2, 3, 10, 1000, 1 << 20}) {
      const Permutation p(key, n);
      for (int64_t i = 0; i < std::min<int64_t>(n, 40); ++i) {
        in.push_back(static_cast<uint64_t>(n));
        out.push_back(static_cast<uint64_t>(p(i)));
      }
    }
    print("permutation", {seed}, in, out);
  }
  {
    const Fingerprint f = fingerprint_array(9, 37, 4, std::as_bytes(std::span<const float>(a)));
    print("fingerprint", patterns(a), {9, 37}, {f.lane[0], f.lane[1]});
  }
  {
    Numbers in, out;
    for (const char* axis : {"kv_heads", "mlp", "pos"}) {
      for (uint64_t n : {0, 1, 7, 100, 1000, 1376}) {
        for (uint64_t count : {1, 2, 3, 8}) {
          in.insert(in.end(), {axis[0] == 'k' ? 1u : axis[0] == 'm' ? 8u : 128u, n, count});
          for (const LeafBounds& leaf :
               leaf_bounds(axis, static_cast<int64_t>(n), static_cast<int64_t>(count))) {
            out.push_back(static_cast<uint64_t>(leaf.begin));
            out.push_back(static_cast<uint64_t>(leaf.end));
          }
        }
      }
    }
    print("leaves", in, {}, out, true);
  }
  fmt::print("}}\n");
}

}  // namespace
}  // namespace ostro::numerics

int main(int argc, char** argv) {
  ostro::numerics::HostArithmetic guard;
  ostro::numerics::print_all(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0);
  return 0;
}
