// Products with int8 matrices and their scales, of random sizes: the interpreter's bits on every instruction
// set, with few rows (which read the matrix as it is stored) and many (which pack it), with usual scales and
// with those that rounding has to be careful with.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "each_isa.h"
#include "ostro/base/test_size.h"
#include "ostro/ir/program/builder.h"
#include "ostro/numerics/bf16.h"
#include "programs.h"
#include "tests/fuzz/rng.h"

namespace ostro {
namespace {

using fuzz::Rng;
using ir::Axis;
using ir::Builder;
using ir::DType;
using ir::OpKind;
using ir::ValueId;
using runtime::Buffer;
using Strings = std::vector<std::string>;

// What scales a matrix has.
enum class Scales { kUsual, kSigned, kExtreme, kNotFinite };

float some_scale(Rng& rng, Scales kind) {
  const float usual = std::ldexp(1.0f + static_cast<float>(rng.below(128)) / 128.0f, -9);
  if (kind == Scales::kUsual || rng.chance(0.5)) return usual;
  if (kind == Scales::kSigned) return rng.chance(0.3) ? 0.0f : -usual;
  if (kind == Scales::kExtreme) return std::ldexp(usual, rng.chance(0.5) ? -118 : 120);
  return rng.chance(0.5) ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
}

struct Case {
  int64_t rows, k, inner, n, groups, experts;  // `inner`: k is [k / inner, inner]; experts 0: one matrix
  DType dtype, out;
  Scales scales;
  int64_t leaves;  // of the contraction
};

testing::ProgramWithInputs product(const Case& c, Rng& rng, std::vector<Buffer>& inputs, uint64_t seed) {
  testing::ProgramWithInputs p("int8");
  const Axis row{"row", c.rows}, outer{"kv_heads", c.k / c.inner}, inner{"head_dim", c.inner}, n{"n", c.n};
  std::vector<Axis> w{outer, inner, n}, scales{{"groups", c.groups}, n};
  if (c.experts > 0) {
    w.insert(w.begin(), {"experts", c.experts});
    scales.insert(scales.begin(), {"experts", c.experts});
  }
  if (c.leaves > 1) p.program.leaves.axes.emplace_back("kv_heads", c.leaves);
  const ValueId x = p.param({c.dtype, {row, outer, inner}}), stored = p.param({DType::i8, w}),
                scale = p.param({c.dtype, scales});
  Builder b(p.program.body);
  const Strings over{"kv_heads", "head_dim"};
  const ValueId matrix =
      b.add(OpKind::dequantize, {stored, scale}, {{"over", over}, {"groups", std::string("groups")}});
  const std::string out(ir::dtype_name(c.out));
  if (c.experts > 0) {
    const ValueId expert = p.param({DType::i32, {row}}, [&](int64_t) { return rng.between(-1, c.experts); });
    p.program.body.results = {b.add(OpKind::expert_dot, {x, matrix, expert, b.i64_scalar(0)},
                                    {{"axis", std::string("experts")}, {"over", over}, {"dtype", out}})};
  } else {
    p.program.body.results = {b.add(OpKind::dot, {x, matrix}, {{"over", over}, {"dtype", out}})};
  }
  inputs = p.inputs(seed);
  Buffer values = Buffer::empty(inputs[2].shape());
  for (size_t i = 0; i < static_cast<size_t>(values.shape().count()); ++i) {
    const numerics::Bf16 s = numerics::to_bf16(some_scale(rng, c.scales));
    if (c.dtype == DType::bf16)
      values.mutable_as<numerics::Bf16>()[i] = s;
    else
      values.mutable_as<float>()[i] = numerics::to_f32(s);
  }
  inputs[2] = values;
  return p;
}

void check_products(uint64_t seed, int programs) {
  testing::EachIsa engines({.threads = 3, .generated_code = false});
  for (int i = 0; i < programs; ++i) {
    Rng rng(seed + static_cast<uint64_t>(i));
    Case c;
    c.inner = rng.pick(std::vector<int64_t>{1, 3, 8, 16});
    c.k = c.inner * rng.between(1, 30);
    c.groups = rng.between(1, 8);
    while (c.k % c.groups != 0) --c.groups;
    c.rows = rng.chance(0.7) ? rng.between(1, 9) : rng.between(10, 40);
    c.n = rng.chance(0.8) ? rng.between(1, 200) : rng.between(500, 1200);
    c.experts = rng.chance(0.5) ? rng.between(1, 4) : 0;
    c.dtype = i % 3 == 0 ? DType::f32 : DType::bf16;
    c.out = rng.chance(0.5) ? c.dtype : DType::f32;
    c.scales = static_cast<Scales>(rng.chance(0.4) ? 0 : rng.below(4));
    c.leaves = rng.chance(0.2) ? 2 : 1;
    std::vector<Buffer> inputs;
    const testing::ProgramWithInputs p = product(c, rng, inputs, seed);
    const std::string d = engines.difference(p.program, inputs);
    CHECK_MESSAGE(d.empty(), "program ", i, " of seed ", seed, ": ", d);
  }
  CHECK(engines.telling() * 10 >= engines.results() * 6);
}

// A matrix of [rows, k] and one of [k, n], quantised here, of which one is dithered, and their product.
testing::ProgramWithInputs integers(Rng& rng) {
  testing::ProgramWithInputs p("integers");
  const auto size = [&] { return rng.chance(0.3) ? 8 * rng.between(1, 10) : rng.between(1, 70); };
  const Axis row{"row", size()}, n{"n", size()};
  const Axis outer{"outer", rng.between(1, 30)}, inner{"inner", rng.pick(std::vector<int64_t>{1, 8, 20, 32})};
  const auto type = [&] { return rng.chance(0.5) ? DType::bf16 : DType::f32; };
  // The contracted axes lie last, first, or around the others.
  const ValueId a = p.param({type(), rng.chance(0.5) ? std::vector<Axis>{row, outer, inner}
                                                     : std::vector<Axis>{outer, row, inner}});
  const ValueId b = p.param(
      {type(), rng.chance(0.5) ? std::vector<Axis>{outer, inner, n} : std::vector<Axis>{n, inner, outer}});
  // The words of the key lie together, are one word twice, or are parts of something larger.
  const int64_t key_kind = rng.below(3);
  const ValueId words = p.param({DType::u32, key_kind == 0   ? std::vector<Axis>{{"word", 2}}
                                             : key_kind == 1 ? std::vector<Axis>{}
                                                             : std::vector<Axis>{{"word", 2}, {"part", 3}}});
  Builder builder(p.program.body);
  ValueId key = words;
  if (key_kind == 1)
    key = builder.add(OpKind::broadcast, {words},
                      {{"axes", Strings{"word"}}, {"sizes", std::vector<int64_t>{2}}});
  if (key_kind == 2) key = builder.add_n(OpKind::unstack, {words}, {{"axis", std::string("part")}})[1];
  ir::Attrs attrs{{"over", Strings{"outer", "inner"}},
                  {"block", rng.pick(std::vector<int64_t>{1, 7, 32, 256})},
                  {"groups", std::string("blocks")}};
  const std::string out = rng.chance(0.5) ? "bf16" : "f32";
  ir::Attrs nearest = attrs, dithered = attrs;
  nearest.set("rounding", std::string("nearest"));
  dithered.set("rounding", std::string("dithered"));
  dithered.set("global_sizes", std::vector<int64_t>{100, 101, inner.size == 32 ? 32 : 102});
  std::vector<ValueId> operands{a, key};
  // Indices of up to 37 bits: blocks of threefry on both sides of the number 2^32.
  for (int i = 0; i < 3; ++i) operands.push_back(builder.i64_scalar(rng.below(1 << 24)));
  const auto left = builder.add_n(OpKind::quantize, operands, dithered);
  const auto right = builder.add_n(OpKind::quantize, {b}, nearest);
  attrs.set("dtype", out);
  p.program.body.results = {builder.add(OpKind::dot_int8, {left[0], left[1], right[0], right[1]}, attrs),
                            left[0], left[1], right[0], right[1]};
  return p;
}

void check_integers(uint64_t seed, int programs) {
  testing::EachIsa engines({.threads = 3, .generated_code = false});
  for (int i = 0; i < programs; ++i) {
    Rng rng(seed + static_cast<uint64_t>(i));
    const testing::ProgramWithInputs p = integers(rng);
    const std::string d = engines.difference(p.program, p.inputs(seed + static_cast<uint64_t>(i)));
    CHECK_MESSAGE(d.empty(), "integers ", i, " of seed ", seed, ": ", d);
  }
  CHECK(engines.telling() * 10 >= engines.results() * 6);
}

TEST_CASE("integer products give the interpreter's bits on every instruction set") { check_integers(1, 20); }

TEST_CASE("slow: integer products give the interpreter's bits, in many more cases") {
  check_integers(sized<uint64_t>(test_seed(), 2, 2), sized(60, 300, 3000));
}

TEST_CASE("products with int8 matrices give the interpreter's bits on every instruction set") {
  check_products(1, 40);
}

TEST_CASE("slow: products with int8 matrices give the interpreter's bits, in many more cases") {
  check_products(sized<uint64_t>(test_seed(), 2, 2), sized(100, 400, 6000));
}

}  // namespace
}  // namespace ostro
