// Attention, forward and backward, of random sizes, masks and forms gives the interpreter's bits on every
// instruction set.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "each_isa.h"
#include "ostro/base/test_size.h"
#include "ostro/ir/program/attention_limits.h"
#include "ostro/ir/program/builder.h"
#include "ostro/ir/text/text.h"
#include "tests/fuzz/rng.h"

namespace ostro {
namespace {

using fuzz::Rng;
using ir::Attrs;
using ir::Axis;
using ir::DType;
using ir::OpKind;
using ir::ValueId;

struct AttentionSizes {
  int64_t batch, kv_heads, group, pos, keys, dim;
};

// Lengths up to 300 and any head_dim up to 256, but no more than `products` of a query's element with a
// key's.
AttentionSizes attention_sizes(Rng& rng, int64_t products) {
  const auto length = [&] { return rng.chance(0.1) ? 1 : rng.between(2, 300); };
  AttentionSizes s{rng.between(1, 3), rng.between(1, 3), rng.between(1, 4), length(), length(), 0};
  s.dim = rng.chance(0.6) ? rng.pick(std::vector<int64_t>{32, 64, 96, 128, 256}) : rng.between(1, 256);
  const bool square = rng.chance(0.5);
  for (;;) {
    if (square) s.keys = s.pos;
    if (s.batch * s.kv_heads * s.group * s.pos * s.keys * s.dim <= products) return s;
    int64_t& x = *rng.pick(std::vector<int64_t*>{&s.batch, &s.kv_heads, &s.group, &s.pos, &s.keys});
    x = rng.between((x + 1) / 2, x);
  }
}

testing::ProgramWithInputs random_attention(Rng& rng, int64_t products, int64_t int8_slices) {
  const AttentionSizes s = attention_sizes(rng, products);
  const DType d = rng.chance(0.5) ? DType::f32 : DType::bf16;
  testing::ProgramWithInputs c("attention");
  ir::Builder b(c.program.body);
  const Axis batch{"batch", s.batch}, pos{"pos", s.pos}, keys{"key_pos", s.keys}, heads{"heads", s.kv_heads},
      group{"group", s.group}, dim{"head_dim", s.dim};
  const ir::Shape q_shape{d, {batch, pos, heads, group, dim}}, k_shape{d, {batch, keys, heads, dim}};
  const ValueId q = c.param(q_shape), k = c.param(k_shape), v = c.param(k_shape), dout = c.param(q_shape);
  const int64_t origin = s.pos == s.keys && rng.chance(0.8) ? 0 : rng.between(0, s.keys);
  Attrs attrs{{"query", pos.name},
              {"key", keys.name},
              {"head_dim", dim.name},
              {"scale", rng.chance(0.5) ? 1 / std::sqrt(static_cast<double>(s.dim)) : 0.37},
              {"causal", int64_t{rng.chance(0.7)}}};
  if (int8_slices != 0) attrs.set("int8_slices", int8_slices);
  std::vector<ValueId> rest{b.i64_scalar(origin)};
  if (rng.chance(0.25)) attrs.set("soft_cap", 1.5);
  if (rng.chance(0.3)) attrs.set("window", rng.between(1, s.keys));
  if (rng.chance(0.3)) {
    attrs.set("segments", int64_t{1});
    // Documents one after the other; a query belongs to that of its position.
    const int64_t longest = rng.between(1, 150);
    std::vector<int64_t> ids(static_cast<size_t>(s.batch * s.keys));
    for (size_t i = 1; i < ids.size(); ++i) ids[i] = ids[i - 1] + (rng.below(longest) == 0 ? 1 : 0);
    rest.push_back(c.param({DType::i32, {batch, pos}}, [&](int64_t e) {
      const int64_t key = std::min(origin + e % s.pos, s.keys - 1);
      return ids[static_cast<size_t>(e / s.pos * s.keys + key)];
    }));
    rest.push_back(
        c.param({DType::i32, {batch, keys}}, [&](int64_t e) { return ids[static_cast<size_t>(e)]; }));
  }
  for (const char* limit : {"prefix", "key_limit"})
    if (rng.chance(0.25)) {
      attrs.set(limit, int64_t{1});
      rest.push_back(c.param({DType::i32, {batch}}, [&](int64_t) { return rng.between(0, s.keys); }));
    }
  if (rng.chance(0.2)) {
    attrs.set("visible", int64_t{1});
    const double share = rng.chance(0.5) ? 0.9 : 0.1;
    const std::vector<Axis> axes = rng.chance(0.7) ? std::vector<Axis>{batch, pos, keys} : std::vector{keys};
    rest.push_back(c.param({DType::boolean, axes}, [&](int64_t) { return int64_t{rng.chance(share)}; }));
  }
  if (rng.chance(0.3)) {
    attrs.set("sink", int64_t{1});
    rest.push_back(c.param({DType::f32, {heads, group}}));
  }
  if (rng.chance(0.4)) c.program.leaves.axes.emplace_back("pos", rng.between(2, 5));
  std::vector<ValueId> operands{q, k, v};
  operands.insert(operands.end(), rest.begin(), rest.end());
  const auto forward = b.add_n(OpKind::attention, operands, attrs);
  operands = {q, k, v, forward[0], forward[1], forward[2], dout};
  operands.insert(operands.end(), rest.begin(), rest.end());
  c.program.body.results = forward;
  for (ValueId g : b.add_n(OpKind::attention_grad, operands, attrs)) c.program.body.results.push_back(g);
  return c;
}

void check_attention(uint64_t seed, int cases, int64_t products, int64_t int8_slices = 0) {
  testing::EachIsa engines({.threads = 3});
  Rng rng(seed);
  for (int i = 0; i < cases; ++i) {
    const testing::ProgramWithInputs c = random_attention(rng, products, int8_slices);
    const std::string d = engines.difference(c.program, c.inputs(seed + static_cast<uint64_t>(i)));
    CHECK_MESSAGE(d.empty(), "case ", i, " of seed ", seed, ": ", d, "\n", ir::print(c.program));
  }
  CHECK(engines.telling() * 10 >= engines.results() * 8);
}

TEST_CASE("attention of random sizes gives the interpreter's bits") { check_attention(1, 40, 100'000); }

TEST_CASE("attention on integers of random sizes gives the interpreter's bits") {
  check_attention(3, 40, 100'000, ir::kInt8Slices);
}

TEST_CASE("slow: attention of random sizes gives the interpreter's bits, in many more cases") {
  check_attention(sized<uint64_t>(test_seed(), 2, 2), sized(60, 60, 3000), 1'000'000);
  check_attention(sized<uint64_t>(test_seed(), 4, 4), sized(30, 30, 1500), 1'000'000, ir::kInt8Slices);
}

}  // namespace
}  // namespace ostro
