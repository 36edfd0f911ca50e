// expert_dot_int8 and expert_outer_int8 on random sizes and routings: the interpreter's bits on every
// instruction set, and the chains of the dense products of each expert's rows.
#include <doctest/doctest.h>

#include <vector>

#include "each_isa.h"
#include "ostro/base/test_size.h"
#include "ostro/ir/program/builder.h"
#include "programs.h"
#include "tests/fuzz/rng.h"

namespace ostro {
namespace {

using fuzz::Rng;
using ir::Attrs;
using ir::Axis;
using ir::Builder;
using ir::DType;
using ir::OpKind;
using ir::ValueId;
using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

// Uniform, all to one expert, a few of them only, and indices beyond the table.
int64_t chosen(Rng& rng, int64_t kind, int64_t experts) {
  if (kind == 1) return experts - 1;
  if (kind == 2) return rng.below(std::max<int64_t>(1, experts / 3));
  if (kind == 3) return rng.between(-1, experts);
  return rng.below(experts);
}

// Rows of tokens and slots that choose their matrix, and the gradient of the matrices. x lacks the slots; its
// columns lie last or first, and so do those of the cotangent.
testing::ProgramWithInputs expert_integers(Rng& rng, int64_t kind) {
  testing::ProgramWithInputs p("expert integers");
  const bool many = rng.chance(0.3);  // rows of several blocks
  const Axis batch{"batch", rng.between(1, 3)}, pos{"pos", many ? rng.between(100, 330) : rng.between(1, 20)},
      slot{"slot", rng.between(1, 3)}, experts{"experts", rng.between(1, 6)};
  const auto size = [&] {
    return many ? rng.between(1, 20) : rng.chance(0.3) ? 16 * rng.between(1, 8) : rng.between(1, 90);
  };
  const Axis in{"in", size()}, part{"part", rng.between(1, 2)}, out{"out", size()};
  const auto type = [&] { return rng.chance(0.6) ? DType::bf16 : DType::f32; };
  const bool last = rng.chance(0.7);
  const auto rows = [&](std::vector<Axis> tokens, std::vector<Axis> columns) {
    std::vector<Axis>& first = last ? tokens : columns;
    const std::vector<Axis>& second = last ? columns : tokens;
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  const ValueId x = p.param({type(), rows({batch, pos}, {in})});
  const ValueId w = p.param({type(), rng.chance(0.6) ? std::vector<Axis>{experts, in, part, out}
                                                     : std::vector<Axis>{part, experts, out, in}});
  const ValueId dy = p.param({type(), rows({batch, pos, slot}, {part, out})});
  const ValueId key = p.param({DType::u32, {{"word", 2}}});
  const ValueId expert =
      p.param({DType::i32, {batch, pos, slot}}, [&](int64_t) { return chosen(rng, kind, experts.size); });
  Builder b(p.program.body);
  const int64_t block = rng.pick(Ints{1, 7, 32, 256});
  const ValueId origin = b.i64_scalar(rng.chance(0.7) ? 0 : 1);
  const auto cut = [&](ValueId v, const Strings& over) {
    return b.add_n(OpKind::quantize, {v},
                   {{"over", over},
                    {"block", block},
                    {"groups", std::string("blocks")},
                    {"rounding", std::string("nearest")}});
  };
  const auto times = [&](ValueId v, const Strings& over) {
    const auto left = cut(v, over), right = cut(w, over);
    return b.add(OpKind::expert_dot_int8, {left[0], left[1], right[0], right[1], expert, origin},
                 {{"axis", std::string("experts")},
                  {"over", over},
                  {"block", block},
                  {"groups", std::string("blocks")},
                  {"dtype", std::string(rng.chance(0.5) ? "bf16" : "f32")}});
  };
  std::vector<ValueId> operands{x, dy, expert, origin, key};
  Ints sizes;
  // Draws of the whole columns, which the kernels take, and of a part of them.
  const bool whole = rng.chance(0.7);
  const ir::Shape shape = p.program.body.shape(dy);
  for (const Axis& a : shape.axes) {
    const bool column = whole && (a.name == "part" || a.name == "out");
    operands.push_back(b.i64_scalar(column ? 0 : rng.below(1 << 20)));
    sizes.push_back(column ? a.size : a.size + rng.below(90));
  }
  p.program.body.results = {times(x, {"in"}), times(dy, {"part", "out"}),
                            b.add(OpKind::expert_outer_int8, operands,
                                  {{"axis", std::string("experts")},
                                   {"size", experts.size},
                                   {"block", block},
                                   {"global_sizes", sizes}})};
  return p;
}

void check_expert_integers(uint64_t seed, int programs) {
  testing::EachIsa engines({.threads = 3, .generated_code = false});
  for (int i = 0; i < programs; ++i) {
    Rng rng(seed + static_cast<uint64_t>(i));
    const testing::ProgramWithInputs p = expert_integers(rng, i % 4);
    const std::string d = engines.difference(p.program, p.inputs(seed + static_cast<uint64_t>(i)));
    CHECK_MESSAGE(d.empty(), "expert integers ", i, " of seed ", seed, ": ", d);
  }
  CHECK(engines.telling() * 10 >= engines.results() * 5);
}

TEST_CASE("integer products of experts give the interpreter's bits on every instruction set") {
  check_expert_integers(1, 20);
}

TEST_CASE("slow: integer products of experts give the interpreter's bits, in many more cases") {
  check_expert_integers(sized<uint64_t>(test_seed(), 2, 2), sized(60, 300, 3000));
}

}  // namespace
}  // namespace ostro
