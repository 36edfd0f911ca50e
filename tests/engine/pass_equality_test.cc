// interp(pass(P)) == interp(P), for every pass.
#include <doctest/doctest.h>

#include "ostro/compile/passes/pass.h"
#include "ostro/interp/engine.h"
#include "ostro/ir/verify.h"
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

}  // namespace ostro
