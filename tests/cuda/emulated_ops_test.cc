// The engine for GPUs on the emulated device gives the interpreter's bits, op by op and for the parts models
// are made of.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>

#include "ostro/cuda/emulated/emulated_device.h"
#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/interp/engine/engine.h"
#include "tests/engine/programs.h"

namespace ostro {
namespace {

using runtime::Buffer;

cuda::Device& device_of(const cuda::EmulationOptions& options) {
  auto device = cuda::emulated_device(options);
  REQUIRE_MESSAGE(device.ok(), device.error().message());
  return **device;
}

std::vector<Buffer> on_host(const std::vector<Buffer>& buffers) {
  auto near = runtime::all_to(buffers, runtime::host_memory());
  REQUIRE_MESSAGE(near.ok(), near.error().message());
  return *near;
}

// Empty when the engine gives the interpreter's bits.
std::string differs(runtime::Engine& engine, const ir::Program& program, const std::vector<Buffer>& inputs,
                    bool give_away = false) {
  auto reference = interp::make_interpreter()->compile(program);
  if (!reference.ok()) return reference.error().message();
  const auto expected = (*reference)->run(inputs);
  if (!expected.ok()) return expected.error().message();
  runtime::CompileOptions options;
  if (give_away) {
    options.donate.resize(program.body.params.size());
    std::iota(options.donate.begin(), options.donate.end(), 0);
  }
  auto executable = engine.compile(program, options);
  if (!executable.ok()) return executable.error().message();
  auto given = runtime::all_to(inputs, engine.memory());
  if (!given.ok()) return given.error().message();
  for (int again = 0; again < 2; ++again) {  // the second time tables and arena are there
    auto got = (*executable)->run(give_away && again == 1 ? std::move(*given) : *given);
    if (!got.ok()) return got.error().message();
    if (std::string d = testing::difference(*expected, on_host(*got)); !d.empty()) return d;
  }
  return "";
}

void check_ops(runtime::Engine& engine, bool give_away) {
  for (const auto& [name, program, finite_only] : testing::op_programs())
    for (bool wild : {false, true}) {
      if (wild && finite_only) continue;
      const std::string d =
          differs(engine, program, testing::make_inputs(program, wild ? 2 : 1, wild), give_away);
      CHECK_MESSAGE(d.empty(), name, std::string(wild ? " (wild): " : ": "), d);
    }
}

TEST_CASE("every op gives the interpreter's bits on the emulated device") {
  check_ops(*cuda::make_device_engine(device_of({.seed = 3})), true);
}

TEST_CASE("kernels of one op each give the interpreter's bits on the emulated device") {
  check_ops(*cuda::make_device_engine(device_of({.seed = 4}), {.fuse = false}), false);
}

}  // namespace
}  // namespace ostro
