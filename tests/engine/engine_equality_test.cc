// The compiled engine gives the interpreter's bits, op by op and for the parts models are made of.
#include <doctest/doctest.h>

#include "ostro/cpu/engine.h"
#include "ostro/interp/engine.h"
#include "programs.h"

namespace ostro {
namespace {

using runtime::Buffer;

std::vector<Buffer> run(runtime::Engine& engine, const ir::Program& program, const std::vector<Buffer>& inputs,
                        const runtime::CompileOptions& options = {}) {
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
      const std::string d = testing::difference(run(*reference, program, inputs), run(**engine, program, inputs));
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

}  // namespace ostro
