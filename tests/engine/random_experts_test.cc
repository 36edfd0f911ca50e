// expert_dot, its derivatives and the combination of a token's experts on random sizes and routings: the
// interpreter's bits on every instruction set; a token alone has the bits that it has among others.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "each_isa.h"
#include "ostro/base/test_size.h"
#include "ostro/grad/differentiate.h"
#include "ostro/ir/program/builder.h"
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

struct Layer {
  int64_t batch, pos, slots, experts, embed, mlp;
};

// Down(up(x)) of the chosen experts, weighted by their gates and summed over the slots; and its gradient.
void add_layer(testing::ProgramWithInputs& p, const Layer& size, DType dtype, DType between,
               const std::function<int64_t(int64_t)>& expert_of) {
  const Axis batch{"batch", size.batch}, pos{"pos", size.pos}, slot{"slot", size.slots},
      experts{"experts", size.experts}, embed{"embed", size.embed}, mlp{"mlp", size.mlp};
  const ValueId x = p.param({dtype, {batch, pos, embed}});
  const ValueId up = p.param({dtype, {experts, embed, mlp}});
  const ValueId down = p.param({dtype, {experts, mlp, embed}});
  const ValueId gate = p.param({DType::f32, {batch, pos, slot}});
  const ValueId expert = p.param({DType::i32, {batch, pos, slot}}, expert_of);
  Builder b(p.program.body);
  const auto times = [&](ValueId rows, ValueId w, const char* over, DType to) {
    return b.add(OpKind::expert_dot, {rows, w, expert, b.i64_scalar(0)},
                 {{"axis", std::string("experts")},
                  {"over", Strings{over}},
                  {"dtype", std::string(ir::dtype_name(to))}});
  };
  const ValueId hidden = times(x, up, "embed", between);
  const ValueId y = times(b.cast(hidden, dtype), down, "mlp", DType::f32);
  const ValueId weighted = b.add(OpKind::mul, {b.broadcast(gate, b.shape(y).axes), y});
  const ValueId combined = b.sum(weighted, {"slot"}, "serial");
  const ValueId loss = b.sum(b.add(OpKind::mul, {combined, combined}), {"batch", "pos", "embed"}, "serial");
  p.program.body.results = {loss};
  auto both = value_and_grad_block(p.program.body, {0, 1, 2, 3});
  REQUIRE_MESSAGE(both.ok(), (both.ok() ? "" : both.error().message()));
  p.program.body = std::move(both).value();
  p.program.body.results.push_back(combined);
}

// Uniform, all to one expert, a few of them only, and indices beyond the table.
std::function<int64_t(int64_t)> routing(int64_t kind, int64_t experts, uint64_t seed) {
  return [=](int64_t row) {
    Rng rng(seed * 1000003 + static_cast<uint64_t>(row));
    if (kind == 1) return experts - 1;
    if (kind == 2) return rng.below(std::max<int64_t>(1, experts / 3));
    if (kind == 3) return rng.between(-1, experts);
    return rng.below(experts);
  };
}

void check_layers(uint64_t seed, int programs, int64_t most) {
  testing::EachIsa engines({.threads = 3, .generated_code = false});
  for (int i = 0; i < programs; ++i) {
    Rng rng(seed + static_cast<uint64_t>(i));
    const bool bf16 = i % 2 == 1;
    const DType dtype = bf16 ? DType::bf16 : DType::f32;
    Layer size{rng.between(1, 3), rng.between(1, most), rng.between(1, 3),
               rng.between(1, 9), rng.between(1, most), rng.between(1, most)};
    testing::ProgramWithInputs p("experts");
    if (rng.chance(0.5)) p.program.leaves.axes.emplace_back("pos", rng.between(2, 3));
    if (rng.chance(0.5)) p.program.leaves.axes.emplace_back("mlp", rng.between(2, 4));
    if (p.program.leaves.count("pos") > 1 && rng.chance(0.3))
      size.pos = rng.between(129, 300), size.mlp %= 24;
    size.mlp = std::max<int64_t>(size.mlp, 1);
    const uint64_t route = rng.bits();
    add_layer(p, size, dtype, rng.chance(0.5) ? dtype : DType::f32, routing(i % 4, size.experts, route));
    const std::string d = engines.difference(p.program, p.inputs(seed));
    CHECK_MESSAGE(d.empty(), "program ", i, " of seed ", seed, ": ", d);
  }
  CHECK(engines.telling() * 10 >= engines.results() * 6);
}

TEST_CASE("layers of experts give the interpreter's bits on every instruction set") {
  check_layers(1, 8, 40);
}

TEST_CASE("slow: layers of experts give the interpreter's bits, in many more cases") {
  check_layers(sized<uint64_t>(test_seed(), 2, 2), sized(24, 60, 600), 70);
}

TEST_CASE("a token alone has the bits that it has in a batch, wherever the others go") {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Layer many{2, 21, 2, 4, 33, 19};
    testing::ProgramWithInputs batch("batch");
    add_layer(batch, many, dtype, dtype, routing(0, many.experts, 5));
    const std::vector<Buffer> inputs = batch.inputs(3);
    const auto engine = cpu::make_cpu_engine({.threads = 2}).value();
    const auto all = (*engine->compile(batch.program))->run(inputs);
    REQUIRE(all.ok());
    for (int64_t token : {int64_t{0}, int64_t{20}, int64_t{41}}) {
      const Layer one{1, 1, 2, 4, 33, 19};
      testing::ProgramWithInputs alone("alone");
      const int32_t* experts = inputs[4].as<int32_t>().data() + 2 * token;
      add_layer(alone, one, dtype, dtype, [&](int64_t row) { return experts[row]; });
      std::vector<Buffer> in = alone.inputs(3);
      const int64_t bytes = 33 * ir::dtype_size(dtype);
      std::copy_n(inputs[0].bytes().data() + token * bytes, bytes, in[0].mutable_bytes().data());
      in[1] = inputs[1], in[2] = inputs[2];
      std::copy_n(inputs[3].as<float>().data() + 2 * token, 2, in[3].mutable_as<float>().data());
      const auto result = (*engine->compile(alone.program))->run(in);
      REQUIRE(result.ok());
      const float *got = result->back().as<float>().data(),
                  *expected = all->back().as<float>().data() + 33 * token;
      CHECK(std::equal(got, got + 33, expected));
    }
  }
}

}  // namespace
}  // namespace ostro
