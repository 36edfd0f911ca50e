// interp(pass(P)) == interp(P), for every pass.
#include <doctest/doctest.h>

#include "ostro/compile/passes/pass.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/ir/program/builder.h"
#include "ostro/ir/rules/verify.h"
#include "programs.h"

namespace ostro {
namespace {

std::vector<runtime::Buffer> interpret(const ir::Program& program,
                                       const std::vector<runtime::Buffer>& inputs) {
  auto executable = interp::make_interpreter()->compile(program);
  REQUIRE(executable.ok());
  auto results = (*executable)->run(inputs);
  REQUIRE(results.ok());
  return *results;
}

}  // namespace

TEST_CASE("no pass changes a bit") {
  for (const auto& [name, program, finite_only] : testing::op_programs()) {
    const auto inputs = testing::make_inputs(program, 3, !finite_only);
    const auto expected = interpret(program, inputs);
    for (const compile::PassInfo& pass : compile::pass_list()) {
      ir::Program changed = program;
      pass.run(changed, {});
      const Status verified = ir::verify(changed);
      REQUIRE_MESSAGE(verified.ok(), name, " after ", pass.name, ": ", verified.error().message());
      const std::string d = testing::difference(expected, interpret(changed, inputs));
      CHECK_MESSAGE(d.empty(), name, " after ", pass.name, ": ", d);
    }
  }
}

TEST_CASE("rows of a cast table are looked up before they are cast") {
  int found = 0;
  for (const auto& [name, program, finite_only] : testing::op_programs()) {
    if (name != "gather from a cast table") continue;
    ++found;
    const auto changed = compile::run_passes(program, {});
    REQUIRE(changed.ok());
    REQUIRE(changed->body.ops.size() >= 2);
    CHECK(changed->body.ops.back().kind == ir::OpKind::cast);
    CHECK(changed->body.ops[changed->body.ops.size() - 2].kind == ir::OpKind::gather);
  }
  CHECK(found == 1);
}

namespace {

// A forward scan with residuals of several kinds and the reversed scan that reads them.
ir::Program scan_pair() {
  using ir::OpKind;
  const ir::Shape row{ir::DType::f32, {{"embed", 19}}};
  ir::Shape stack = row;
  stack.axes.insert(stack.axes.begin(), {"layer", 4});
  ir::Program p;
  const ir::ValueId w = p.body.add_param(row), x = p.body.add_param(row), layers = p.body.add_param(stack);
  ir::Builder b(p.body);
  ir::Block forward;
  {
    const ir::ValueId c = forward.add_param(row), h = forward.add_param(row), l = forward.add_param(row);
    ir::Builder f(forward);
    const ir::ValueId t = f.add(OpKind::tanh, {f.add(OpKind::mul, {h, l})});
    const ir::ValueId e = f.add(OpKind::exp, {f.add(OpKind::neg, {t})});
    forward.ops.back().label = "kept";
    const ir::ValueId next = f.add(OpKind::add, {h, f.add(OpKind::mul, {e, c})});
    forward.results = {next, t, e, l};
  }
  const auto up = b.add_n(OpKind::scan, {w, x, layers},
                          {{"axis", std::string("layer")},
                           {"length", int64_t{4}},
                           {"consts", int64_t{1}},
                           {"carries", int64_t{1}},
                           {"reverse", int64_t{0}}},
                          {forward});
  ir::Block backward;
  {
    const ir::ValueId d = backward.add_param(row), t = backward.add_param(row), e = backward.add_param(row),
                      l = backward.add_param(row);
    ir::Builder r(backward);
    const ir::ValueId g = r.add(OpKind::mul, {d, r.add(OpKind::sub, {e, r.add(OpKind::mul, {t, t})})});
    backward.results = {g, r.add(OpKind::mul, {g, l})};
  }
  const auto down = b.add_n(OpKind::scan, {up[0], up[1], up[2], up[3]},
                            {{"axis", std::string("layer")},
                             {"length", int64_t{4}},
                             {"consts", int64_t{0}},
                             {"carries", int64_t{1}},
                             {"reverse", int64_t{1}}},
                            {backward});
  p.body.results = {up[0], down[0], down[1]};
  return p;
}

}  // namespace

TEST_CASE("rematerialisation changes what is stacked, and no bit") {
  const ir::Program program = scan_pair();
  REQUIRE(ir::verify(program).ok());
  const auto inputs = testing::make_inputs(program, 5, false);
  const auto expected = interpret(program, inputs);
  const auto stacked = [](const ir::Program& p) {
    for (const ir::Op& op : p.body.ops)
      if (op.kind == ir::OpKind::scan) return op.results.size() - 1;
    return size_t{0};
  };
  for (const auto& [policy, count] :
       {std::pair<std::string, size_t>{"keep", 3}, {"none", 1}, {"all", 1}, {"save:kept", 2}}) {
    auto changed = compile::run_passes(program, {.remat = policy});
    REQUIRE_MESSAGE(changed.ok(), policy, ": ", changed.error().message());
    CHECK(stacked(*changed) == count);
    CHECK(testing::difference(expected, interpret(*changed, inputs)) == "");
  }
  CHECK(!compile::run_passes(program, {.remat = "everything"}).ok());
}

}  // namespace ostro
