// The order of units: collectives stay in the order of the program, whatever is fused around them. What
// serial sums compute again.
#include <doctest/doctest.h>

#include "ostro/compile/plan/plan.h"
#include "ostro/ir/program/builder.h"
#include "ostro/ir/program/op_table.h"

namespace ostro::compile {
namespace {

using ir::Builder;
using ir::OpKind;
using ir::ValueId;

const ir::Shape kValue{ir::DType::f32, {{"n", 8}}};

std::vector<OpKind> collectives(const ir::Program& program) {
  const auto module = lower(program, {});
  REQUIRE(module.ok());
  std::vector<OpKind> order;
  for (const Step& s : module->plan.steps)
    if (s.kind == StepKind::kLoop || (s.kind == StepKind::kOp && ir::is_collective(s.op)))
      order.push_back(s.kind == StepKind::kLoop ? OpKind::scan : s.op);
  return order;
}

ir::Attrs over(const char* mesh_axis) {
  return {{"mesh_axis", std::string(mesh_axis)}, {"workers", int64_t{2}}};
}

// a = x + x is fused with what is computed from it after both collectives, if `late`. Then the first
// collective, which reads a, is ready later than the second.
ir::Program two_collectives(bool late, bool first_in_loop) {
  ir::Program p;
  const ValueId x = p.body.add_param(kValue), y = p.body.add_param(kValue);
  Builder b(p.body);
  const ValueId a = b.add(OpKind::add, {x, x});
  ValueId first = -1;
  if (first_in_loop) {
    ir::Block body;
    const ValueId carry = body.add_param(kValue);
    body.results = {Builder(body).add(OpKind::all_reduce_max, {carry}, over("data"))};
    first = b.try_add(OpKind::scan, {a},
                      {{"axis", std::string("layers")},
                       {"length", int64_t{3}},
                       {"consts", int64_t{0}},
                       {"carries", int64_t{1}},
                       {"reverse", int64_t{0}}},
                      {std::move(body)})
                .value()[0];
  } else {
    first = b.add(OpKind::all_reduce_max, {a}, over("data"));
  }
  const ValueId second = b.add(OpKind::all_reduce_bits, {y}, over("data"));
  p.body.results = {first, second, b.add(OpKind::mul, {late ? a : x, y})};
  return p;
}

TEST_CASE("collectives run in the order of the program, on workers that fuse and on those that do not") {
  for (const bool late : {false, true}) {
    CHECK(collectives(two_collectives(late, false)) ==
          std::vector{OpKind::all_reduce_max, OpKind::all_reduce_bits});
    CHECK(collectives(two_collectives(late, true)) == std::vector{OpKind::scan, OpKind::all_reduce_bits});
  }
}

TEST_CASE("what lies before one collective is not fused with what reads a later one") {
  ir::Program p;
  const ValueId x = p.body.add_param(kValue), y = p.body.add_param(kValue);
  Builder b(p.body);
  const ValueId a = b.add(OpKind::add, {x, x});
  const ValueId first = b.add(OpKind::all_reduce_max, {a}, over("data"));
  const ValueId second = b.add(OpKind::all_reduce_bits, {y}, over("data"));
  p.body.results = {first, b.add(OpKind::mul, {a, second})};
  CHECK(collectives(p) == std::vector{OpKind::all_reduce_max, OpKind::all_reduce_bits});
  CHECK(lower(p, {})->plan.steps.size() == 4);
}

// The ops that serial sums compute in their own units, sums first to last.
std::vector<std::vector<OpKind>> of_serial_sums(const ir::Program& program) {
  const auto module = lower(program, {});
  REQUIRE(module.ok());
  std::vector<std::vector<OpKind>> out;
  for (const Step& s : module->plan.steps) {
    if (s.kind != StepKind::kKernel || s.ops.back().kind != OpKind::sum) continue;
    out.emplace_back();
    for (const FusedOp& o : s.ops) out.back().push_back(o.kind);
  }
  return out;
}

TEST_CASE("a serial sum reads what others need as well, where computing it again would read more") {
  const ir::Shape rows{ir::DType::f32, {{"row", 6}, {"col", 8}}};
  ir::Program p;
  Builder b(p.body);
  const ValueId x = p.body.add_param(rows), y = p.body.add_param(rows), z = p.body.add_param(rows);
  const ValueId column = p.body.add_param({ir::DType::f32, {{"col", 8}}});
  const auto sum_of = [&](ValueId v) { return b.sum(b.add(OpKind::mul, {v, x}), {"col"}, "serial"); };
  using Ops = std::vector<std::vector<OpKind>>;
  const ValueId first = b.add(OpKind::add, {x, y});
  SUBCASE("nobody else needs it") {
    p.body.results = {sum_of(first)};
    CHECK(of_serial_sums(p) == Ops{{OpKind::add, OpKind::mul, OpKind::sum}});
  }
  SUBCASE("the next one of a chain, and the caller") {
    const ValueId second = b.add(OpKind::add, {first, z});
    p.body.results = {sum_of(first), sum_of(second), second};
    CHECK(of_serial_sums(p) == Ops{{OpKind::mul, OpKind::sum}, {OpKind::mul, OpKind::sum}});
  }
  SUBCASE("one array and a column are as much as the result") {
    const ValueId scaled = b.add(OpKind::mul, {x, b.broadcast(column, rows.axes)});
    p.body.results = {b.sum(scaled, {"col"}, "serial"), scaled};
    CHECK(of_serial_sums(p) == Ops{{OpKind::mul, OpKind::sum}});
  }
}

}  // namespace
}  // namespace ostro::compile
