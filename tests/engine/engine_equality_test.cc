// The compiled engine gives the interpreter's bits, op by op and for the parts models are made of.
#include <doctest/doctest.h>

#include "ostro/cpu/engine.h"
#include "ostro/interp/engine.h"
#include "programs.h"

namespace ostro {
namespace {

using runtime::Buffer;

std::vector<Buffer> run(runtime::Engine& engine, const ir::Program& program,
                        const std::vector<Buffer>& inputs, const runtime::CompileOptions& options = {}) {
  auto executable = engine.compile(program, options);
  REQUIRE_MESSAGE(executable.ok(), program.name, ": ", executable.error().message());
  auto results = (*executable)->run(inputs);
  REQUIRE_MESSAGE(results.ok(), program.name, ": ", results.error().message());
  return *results;
}

void check_engine(const cpu::CpuOptions& options) {
  auto engine = cpu::make_cpu_engine(options);
  REQUIRE(engine.ok());
  const auto reference = interp::make_interpreter();
  for (const auto& [name, program, finite_only] : testing::op_programs())
    for (bool wild : {false, true}) {
      if (wild && finite_only) continue;
      const std::vector<Buffer> inputs = testing::make_inputs(program, wild ? 2 : 1, wild);
      const std::string d =
          testing::difference(run(*reference, program, inputs), run(**engine, program, inputs));
      CHECK_MESSAGE(d.empty(), name.c_str(), wild ? " (wild): " : ": ", d);
    }
}

}  // namespace

TEST_CASE("built-in loops alone give the interpreter's bits") {
  check_engine({.isa = "generic", .threads = 2, .generated_code = false});
}

TEST_CASE("generated kernels, one per op, give the interpreter's bits") {
  check_engine({.isa = "avx2", .threads = 2, .fuse = false});
}

TEST_CASE("fused kernels give the interpreter's bits") { check_engine({.threads = 2}); }

namespace {

const ir::Program& program_named(const std::vector<testing::NamedProgram>& programs,
                                 const std::string& name) {
  for (const auto& p : programs)
    if (p.name == name) return p.program;
  FAIL("no program ", name);
  return programs[0].program;
}

}  // namespace

TEST_CASE("a build that contracts products into fused multiply-adds is found out") {
  const auto programs = testing::op_programs();
  const ir::Program& program = program_named(programs, "adamw");
  const auto inputs = testing::make_inputs(program, 1, false);
  const auto expected = run(*interp::make_interpreter(), program, inputs);
  auto wrong = cpu::make_cpu_engine({.threads = 1, .cc_opt = "-O3 -ffp-contract=fast"});
  REQUIRE(wrong.ok());
  CHECK(testing::difference(expected, run(**wrong, program, inputs)) != "");
  auto slow = cpu::make_cpu_engine({.threads = 1, .cc_opt = "-O1"});
  REQUIRE(slow.ok());
  CHECK(testing::difference(expected, run(**slow, program, inputs)) == "");
}

TEST_CASE("results take the memory of parameters that were given away") {
  const auto programs = testing::op_programs();
  const ir::Program& program = program_named(programs, "adamw");
  const auto expected = run(*interp::make_interpreter(), program, testing::make_inputs(program, 1, false));
  auto engine = cpu::make_cpu_engine({.threads = 2});
  REQUIRE(engine.ok());
  auto executable = (*engine)->compile(program, {.donate = {0, 1, 2}});
  REQUIRE(executable.ok());
  auto inputs = testing::make_inputs(program, 1, false);
  const void* parameter = inputs[0].bytes().data();
  const void* second = inputs[1].bytes().data();
  const Buffer held = inputs[1];  // another handle: this one must stay as it is
  const Buffer before = Buffer::copy_of(held.shape(), held.bytes().data());
  auto results = (*executable)->run(std::move(inputs));
  REQUIRE(results.ok());
  CHECK(testing::difference(expected, *results) == "");
  CHECK((*results)[0].bytes().data() == parameter);
  CHECK((*results)[1].bytes().data() != second);
  CHECK(testing::difference({before}, {held}) == "");
}

}  // namespace ostro
