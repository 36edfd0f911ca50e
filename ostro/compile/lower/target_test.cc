// What an engine says of itself (Target) changes how programs are lowered.
#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/compile/plan/plan.h"
#include "ostro/ir/program/builder.h"

namespace ostro::compile {
namespace {

using ir::Builder;
using ir::OpKind;
using ir::ValueId;

const ir::Shape kTable{ir::DType::f32, {{"a", 6}, {"b", 48}}};

Module lowered(const ir::Program& program, const Target& target) {
  auto module = lower(program, {.target = target});
  REQUIRE(module.ok());
  return std::move(*module);
}

int64_t count(const Module& module, StepKind kind) {
  return std::count_if(module.plan.steps.begin(), module.plan.steps.end(),
                       [&](const Step& s) { return s.kind == kind; });
}

// exp(x - max) / sum: exp is needed in two passes over a row.
ir::Program softmax() {
  ir::Program p;
  const ValueId x = p.body.add_param(kTable);
  Builder b(p.body);
  const auto rows = [&](ValueId v) { return b.broadcast(v, kTable.axes); };
  const ir::Attrs over{{"axes", std::vector<std::string>{"b"}}};
  const ValueId e = b.add(OpKind::exp, {b.add(OpKind::sub, {x, rows(b.add(OpKind::reduce_max, {x}, over))})});
  p.body.results = {b.add(OpKind::div, {e, rows(b.sum(e, {"b"}, "striped"))})};
  return p;
}

TEST_CASE("an operand that an engine's routine cannot read through strides is copied first") {
  ir::Program p;
  const ValueId x = p.body.add_param(kTable);
  Builder b(p.body);
  p.body.results = {b.add(OpKind::sort, {b.transpose(x, {"b", "a"})}, {{"axis", std::string("a")}})};
  Target target;
  CHECK(count(lowered(p, target), StepKind::kCopy) == 1);
  target.reads_views = [](OpKind) { return true; };
  CHECK(count(lowered(p, target), StepKind::kCopy) == 0);
}

TEST_CASE("an engine that runs no fingerprints as epilogues gets them as steps") {
  ir::Program p;
  const ValueId x = p.body.add_param(kTable);
  Builder b(p.body);
  const ValueId y = b.add(OpKind::mul, {x, x}), zero = b.i64_scalar(0);
  p.body.results = {
      y, b.add(OpKind::fingerprint, {y, zero, zero}, {{"global_sizes", std::vector<int64_t>{6, 48}}})};
  Target target;
  const Module with = lowered(p, target);
  CHECK(count(with, StepKind::kOp) == 0);
  CHECK(with.plan.steps[0].epilogues.size() == 1);
  target.fingerprint_epilogues = false;
  const Module without = lowered(p, target);
  CHECK(count(without, StepKind::kOp) == 1);
  CHECK(without.plan.steps[0].epilogues.empty());
  CHECK(without.nests == with.nests);
}

TEST_CASE("values of long rows are computed again, where short rows save them for the next pass") {
  Target target;
  const Module saving = lowered(softmax(), target);
  REQUIRE(saving.nests.size() == 1);
  const auto saves = [](const Nest& nest) {
    return std::any_of(nest.ops.begin(), nest.ops.end(), [](const NestOp& op) { return op.saved >= 0; });
  };
  CHECK(saves(saving.nests[0]));
  target.saved_elements = 47;
  const Module again = lowered(softmax(), target);
  REQUIRE(again.nests.size() == 1);
  CHECK(!saves(again.nests[0]));
  CHECK((again.nests[0] != saving.nests[0]));
}

TEST_CASE("a thread gets as many rows as have the elements that are worth it") {
  Target target;
  target.elements_for_thread = 96;
  const Module module = lowered(softmax(), target);
  CHECK(module.plan.steps[0].extent == 6);
  CHECK(module.plan.steps[0].grain == 2);
}

TEST_CASE("a serial sum takes fewer outputs at a time when there would be too few pieces for threads") {
  ir::Program p;
  const ir::Shape wide{ir::DType::f32, {{"a", 6}, {"b", 1024}}};
  const ValueId x = p.body.add_param(wide);
  p.body.results = {Builder(p.body).sum(x, {"a"}, "serial")};
  Target target;
  CHECK(lowered(p, target).nests[0].tile == 128);
  target.summed_pieces = 4;
  CHECK(lowered(p, target).nests[0].tile == 256);
}

}  // namespace
}  // namespace ostro::compile
