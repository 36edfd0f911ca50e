// Which stacks and concats are made by the kernels of their parts.
#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/compile/plan/plan.h"
#include "ostro/ir/program/builder.h"

namespace ostro::compile {
namespace {

using ir::Builder;
using ir::DType;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

const Shape kPart{DType::f32, {{"b", 2}, {"a", 3}, {"c", 4}}};

Plan plan_of(const ir::Program& program) {
  auto module = lower(program, {});
  REQUIRE(module.ok());
  return std::move(module->plan);
}

bool has_op(const Plan& plan, OpKind kind) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [&](const Step& s) { return s.kind == StepKind::kOp && s.op == kind; });
}

// x less its greatest element over `over`; no `over`: x + x.
ValueId part(Builder& b, ValueId x, const std::vector<std::string>& over) {
  if (over.empty()) return b.add(OpKind::add, {x, x});
  return b.add(OpKind::sub, {x, b.broadcast(b.add(OpKind::reduce_max, {x}, {{"axes", over}}), kPart.axes)});
}

// Do the kernels of two parts write the stack or concat on its axis `at`?
bool in_place(OpKind kind, int64_t at, const std::vector<std::string>& over) {
  ir::Program p;
  const ValueId x = p.body.add_param(kPart), y = p.body.add_param(kPart);
  Builder b(p.body);
  const ir::Attrs attrs = kind == OpKind::stack
                              ? ir::Attrs{{"axis", std::string("new")}, {"position", at}}
                              : ir::Attrs{{"axis", kPart.axes[static_cast<size_t>(at)].name}};
  p.body.results = {b.add(OpKind::neg, {b.add(kind, {part(b, x, over), part(b, y, {})}, attrs)})};
  return !has_op(plan_of(p), kind);
}

TEST_CASE("parts of a stack or concat are written in their places, unless a row would be torn apart") {
  for (OpKind kind : {OpKind::stack, OpKind::concat}) {
    const int64_t last = kind == OpKind::stack ? 3 : 2;  // where parts are single elements
    for (int64_t at = 0; at <= last; ++at) {
      INFO(ir::op_name(kind), " ", at);
      CHECK(in_place(kind, at, {}) == (at < last));
      CHECK(in_place(kind, at, {"c"}) == (at < last && at <= 2));
      CHECK(in_place(kind, at, {"a", "c"}) == (at <= 1));
      CHECK(in_place(kind, at, {"b", "a", "c"}) == (at == 0));
    }
  }
}

TEST_CASE("a part in its place: the joined value's memory, from where it begins, as far apart as it lies") {
  ir::Program p;
  const ValueId x = p.body.add_param(kPart), y = p.body.add_param(kPart);
  Builder b(p.body);
  const ValueId s = b.add(OpKind::stack, {part(b, x, {"c"}), part(b, y, {})},
                          {{"axis", std::string("new")}, {"position", int64_t{1}}});
  p.body.results = {b.add(OpKind::neg, {s})};
  const Plan plan = plan_of(p);
  REQUIRE(plan.steps.size() == 3);
  const View &first = plan.steps[0].out[0], &second = plan.steps[1].out[0], &all = plan.steps[2].in[0];
  CHECK(first.buffer == all.buffer);
  CHECK(second.buffer == all.buffer);
  CHECK(first.offset == 0);
  CHECK(second.offset == 12);
  CHECK(first.strides == std::vector<int64_t>{24, 4, 1});
  CHECK(second.strides == first.strides);
  CHECK(all.dense());
}

TEST_CASE("parts that something else reads, twice the same part and results are joined by the routine") {
  ir::Program p;
  const ValueId x = p.body.add_param(kPart), y = p.body.add_param(kPart);
  Builder b(p.body);
  const ValueId v = part(b, x, {}), w = part(b, y, {});
  const auto stack = [&](ValueId one, ValueId two) {
    return b.add(OpKind::stack, {one, two}, {{"axis", std::string("new")}, {"position", int64_t{0}}});
  };
  SUBCASE("another reader") {
    const ValueId s = b.add(OpKind::neg, {stack(v, w)});
    p.body.results = {s, b.add(OpKind::dot, {v, y}, {{"over", std::vector<std::string>{"c"}}})};
  }
  SUBCASE("a part that is a result") { p.body.results = {b.add(OpKind::neg, {stack(v, w)}), w}; }
  SUBCASE("the same part twice") { p.body.results = {b.add(OpKind::neg, {stack(v, v)})}; }
  SUBCASE("a result") { p.body.results = {stack(v, w)}; }
  SUBCASE("a parameter as a part") { p.body.results = {b.add(OpKind::neg, {stack(v, y)})}; }
  CHECK(has_op(plan_of(p), OpKind::stack));
}

}  // namespace
}  // namespace ostro::compile
