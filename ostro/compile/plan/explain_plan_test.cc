// Reasons, names and costs of a plan's steps.
#include "ostro/compile/plan/explain_plan.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/compile/fuse/fuse.h"
#include "ostro/ir/program/builder.h"

namespace ostro::compile {
namespace {

using ir::Builder;
using ir::DType;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

const Shape kRows{DType::f32, {{"row", 6}, {"col", 8}}};

Module module_of(const ir::Program& program, bool reasons = true) {
  auto module = lower(program, {.reasons = reasons});
  REQUIRE(module.ok());
  return std::move(module).value();
}

// The reasons of the step that makes a value by an op of this kind.
std::string reasons_of(const Module& module, OpKind last) {
  std::string text;
  for (const Step& step : module.plan.steps) {
    const bool it = step.kind == StepKind::kKernel ? step.ops.back().kind == last
                                                   : step.kind == StepKind::kOp && step.op == last;
    if (!it) continue;
    for (const NotFused& n : step.not_fused)
      text += step_name({.op = n.producer.kind}) + ": " + n.reason + "\n";
  }
  return text;
}

TEST_CASE("explain: every refusal of fusion says why") {
  ir::Program p;
  Builder b(p.body);
  const ValueId x = p.body.add_param(kRows), w = p.body.add_param({DType::f32, {{"col", 8}, {"out", 8}}});
  SUBCASE("a routine") {
    p.body.results = {b.add(OpKind::neg, {b.dot(b.add(OpKind::exp, {x}), w, {"col"})})};
    const Module m = module_of(p);
    CHECK(reasons_of(m, OpKind::neg) == "dot: dot is a built-in routine\n");
    CHECK(reasons_of(m, OpKind::dot) == "exp: dot is a built-in routine\n");
  }
  SUBCASE("other sizes") {
    const ValueId row = b.add(OpKind::exp, {b.sum(x, {"col"}, "serial")});
    p.body.results = {b.add(OpKind::neg, {b.broadcast(b.add(OpKind::tanh, {row}), kRows.axes)})};
    const Module m = module_of(p);
    CHECK(reasons_of(m, OpKind::neg) == "tanh: loops of other sizes: (6, 8) here\n");
    CHECK(reasons_of(m, OpKind::tanh).find("sum: a serial sum runs by itself") == 0);
  }
  SUBCASE("another place") {
    const Shape square{DType::f32, {{"a", 8}, {"b", 8}}};
    const ValueId y = p.body.add_param(square);
    const ValueId turned = b.rename(b.transpose(b.add(OpKind::exp, {y}), {"b", "a"}), {"b", "a"}, {"a", "b"});
    p.body.results = {b.add(OpKind::neg, {turned})};
    CHECK(reasons_of(module_of(p), OpKind::neg).find("exp: the value is read elsewhere") == 0);
  }
  SUBCASE("a detour") {
    const ValueId e = b.add(OpKind::exp, {x});
    const ValueId d = b.rename(b.dot(e, w, {"col"}), {"out"}, {"col"});
    p.body.results = {b.add(OpKind::add, {e, d})};
    CHECK(reasons_of(module_of(p), OpKind::add).find("exp: dot lies between") != std::string::npos);
  }
  SUBCASE("rows") {
    ir::Attrs both;
    both.set("axes", std::vector<std::string>{"row", "col"});
    const ValueId m = b.add(OpKind::reduce_max, {x}, both);
    p.body.results = {b.sum(b.add(OpKind::sub, {x, b.broadcast(m, kRows.axes)}), {"col"}, "striped")};
    CHECK(reasons_of(module_of(p), OpKind::sum).find("sub: their rows end at other axes") == 0);
  }
}

TEST_CASE("explain: looking for reasons changes nothing") {
  ir::Program p;
  Builder b(p.body);
  const ValueId x = p.body.add_param(kRows);
  const ValueId s = b.sum(b.add(OpKind::exp, {x}), {"col"}, "striped");
  p.body.results = {b.add(OpKind::div, {x, b.broadcast(s, kRows.axes)})};
  const Module with = module_of(p), without = module_of(p, false);
  CHECK(print_plan(with) == print_plan(without));
  CHECK((with.nests == without.nests));
  for (const Step& step : without.plan.steps) CHECK(step.not_fused.empty());
}

TEST_CASE("explain: names, costs and shares") {
  ir::Program p;
  p.name = "toy";
  p.param_names = {"x", "w"};
  p.result_names = {"y", "z"};
  Builder b(p.body);
  const ValueId x = p.body.add_param(kRows.with_dtype(DType::bf16)),
                w = p.body.add_param({DType::bf16, {{"col", 8}, {"out", 8}}});
  b.set_scope("layers/ckpt:mlp/mlp");
  const ValueId d = b.dot(x, w, {"col"});
  b.set_scope("layers");
  const ValueId z = b.add(OpKind::mul, {b.add(OpKind::exp, {d}), d});
  b.set_scope("");
  p.body.results = {z, b.cast(x, DType::f32)};
  const Module m = module_of(p);
  REQUIRE(m.plan.steps.size() == 3);
  std::vector<std::string> names;
  const Step* dot = nullptr;
  for (const Step& step : m.plan.steps) {
    names.push_back(step_name(step));
    if (step.kind == StepKind::kOp) dot = &step;
  }
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"layers exp+mul", "layers/mlp dot", "z cast"});
  REQUIRE(dot != nullptr);
  CHECK(dot->flops == 2 * 6 * 8 * 8);
  const MachineLimits limits{.f32_flops = 10, .bf16_flops = 100, .bytes = 1e9};
  CHECK(least_seconds(*dot, limits) == doctest::Approx(7.68));

  const std::string text = explain_plan(p.name, m);
  CHECK(text.find("toy: ") == 0);
  CHECK(text.find("fused: layers: exp, mul") != std::string::npos);
  CHECK(text.find("us a run") == std::string::npos);
  const Measured measured{limits, [](const std::string&, const std::string& name) {
                            return name == "layers/mlp dot" ? 15.36 : -1.0;
                          }};
  const std::string timed = explain_plan(p.name, m, &measured);
  CHECK(timed.find("   50%  layers/mlp dot") != std::string::npos);
  CHECK(timed.find("did not run  layers exp+mul") != std::string::npos);
}

TEST_CASE("explain: a broadcast operand counts once") {
  View v{.buffer = 0, .shape = kRows, .strides = {0, 1}};
  CHECK(v.touched_bytes() == 8 * 4);
  CHECK(View::whole(0, kRows).touched_bytes() == 6 * 8 * 4);
}

}  // namespace
}  // namespace ostro::compile
