// A head with its cross-entropy in tiles of tokens gives the interpreter's bits on the emulated device, and
// needs the memory of one tile; faults of it are found.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/gpu/emulated/emulated_device.h"
#include "ostro/interp/engine/engine.h"
#include "tests/engine/heads.h"
#include "tests/engine/programs.h"

namespace ostro {
namespace {

using ir::DType;
using runtime::Buffer;
using testing::Head;
using testing::IntegerHead;
using testing::program_of;

// No vocabulary is a multiple of a tile or a block of threads. The third has rows of more than one stretch of
// the gradient that lies over its logits; the second has tokens that are no multiple of a tile of 32.
std::vector<ir::Program> float_heads() {
  return {program_of(Head{.tied = true}),
          program_of(Head{.dtype = DType::bf16, .batch = 3, .pos = 31, .embed = 33, .vocab = 130, .z = 0.25}),
          program_of(Head{.dtype = DType::bf16, .pos = 20, .embed = 8, .vocab = 1100, .tied = true}),
          program_of(Head{.pos = 97, .embed = 32, .vocab = 132, .gradient = false})};
}

// The last has operands of whole words of 16 bytes, in tiles of 64 tokens.
std::vector<ir::Program> integer_heads() {
  return {program_of(IntegerHead{}),
          program_of(
              IntegerHead{.batch = 1, .pos = 203, .embed = 40, .vocab = 130, .block = 48, .first_token = 5}),
          program_of(IntegerHead{.pos = 80, .embed = 64, .vocab = 144, .block = 64, .tied = true})};
}

// Empty when the engine runs the program in tiles and gives the interpreter's bits. The second run finds the
// first one's sums in its memory.
std::string differs_in_tiles(runtime::Engine& engine, const ir::Program& program) {
  const auto plan = engine.inspector()->plan(program, {});
  if (!plan.ok()) return plan.error().message();
  if (plan->find("tiles") == std::string::npos) return "no tiles in its plan:\n" + *plan;
  const std::vector<Buffer> inputs = testing::make_inputs(program, 3, false);
  const auto expected = interp::make_interpreter()->compile(program).value()->run(inputs);
  if (!expected.ok()) return expected.error().message();
  const auto executable = engine.compile(program);
  if (!executable.ok()) return executable.error().message();
  for (int again = 0; again < 2; ++again) {
    const auto got = (*executable)->run(inputs);
    if (!got.ok()) return got.error().message();
    const auto near = runtime::all_to(*got, runtime::host_memory());
    if (!near.ok()) return near.error().message();
    if (std::string d = testing::difference(*expected, *near); !d.empty()) return d;
  }
  return "";
}

std::unique_ptr<runtime::Engine> engine_of(const gpu::EmulationOptions& options,
                                           const cuda::DeviceEngineOptions& engine) {
  const auto device = gpu::emulated_device(options);
  REQUIRE_MESSAGE(device.ok(), device.error().message());
  return cuda::make_device_engine(**device, engine);
}

TEST_CASE("heads in tiles of tokens give the interpreter's bits on the emulated device") {
  for (const cuda::FastFamilies& fast : {cuda::kAllFast, cuda::FastFamilies{}}) {
    const auto engine = engine_of({.seed = 7}, {.head_tile = 32, .fast = fast});
    for (const auto& programs : {float_heads(), integer_heads()})
      for (size_t i = 0; i < programs.size(); ++i) {
        const std::string d = differs_in_tiles(*engine, programs[i]);
        CHECK_MESSAGE(d.empty(), programs[i].name, " ", i, fast[0] ? "" : " (plain)", ": ", d);
      }
  }
}

TEST_CASE("a device needs the memory of one tile of logits, also for what is made of their gradient") {
  const auto arena = [](const ir::Program& program, int64_t tile) {
    const auto info = engine_of({}, {.head_tile = tile})->estimate(program);
    REQUIRE_MESSAGE(info.ok(), info.error().message());
    return info->arena_bytes;
  };
  constexpr int64_t kLogits = 8 * 64 * 1024 * 4;
  for (const ir::Program& program :
       {program_of(Head{.batch = 8, .pos = 64, .embed = 16, .vocab = 1024}),
        program_of(IntegerHead{.batch = 8, .pos = 64, .embed = 16, .vocab = 1024})}) {
    CHECK(arena(program, -1) > kLogits);
    CHECK(arena(program, 32) < kLogits / 8);
  }
  // What is chosen: of 250 MiB of logits about a half, and the gradient lies where they do.
  const ir::Program large = program_of(Head{.batch = 1, .pos = 2048, .embed = 8, .vocab = 32000});
  CHECK(arena(large, 0) < int64_t{140} << 20);
  CHECK(arena(large, -1) < int64_t{270} << 20);
}

TEST_CASE("control: faults of heads in tiles are found on the emulated device") {
  struct Fault {
    const char* what;
    gpu::EmulationOptions::Change change;
    ir::Program program;
  };
  const std::vector<ir::Program> floats = float_heads(), integers = integer_heads();
  const Fault faults[] = {
      {"a gradient that is written before its logits are read",
       {"[row * a.vocab + i] : 0.0f;\n    }\n    BARRIER();", "[row * a.vocab + i] : 0.0f;\n    }"},
       floats[2]},
      {"rows of a gradient that lie one behind the other",
       {"row * a.to_row + i, y", "row * a.vocab + i, y"},
       floats[1]},
      {"a product that forgets the tiles before",
       {"a.goes_on ? AT(const float, a.c)[to] : 0.0f", "0.0f"},
       floats[0]},
      {"a product of integers that forgets the tiles before",
       {"a.goes_on ? AT(const float, a.to)[t] : 0.0f", "0.0f"},
       integers[0]},
      {"a product of integers by tiles that forgets the tiles before",
       {"if (a.goes_on)", "if (false)"},
       integers[1]},
      {"a product of whole words that forgets the tiles before",
       {"if (a.goes_on)", "if (false)"},
       integers[2]},
  };
  for (const Fault& fault : faults) {
    CAPTURE(std::string(fault.what));
    const auto device = gpu::emulated_device({.changes = {fault.change}});
    REQUIRE_MESSAGE(device.ok(), device.error().message());
    const auto engine = cuda::make_device_engine(**device, {.head_tile = 32});
    const std::string d = differs_in_tiles(*engine, fault.program);
    CHECK(!d.empty());
    CHECK_MESSAGE(d.find("device text") == std::string::npos, d);
    CHECK(gpu::changes_made(**device) > 0);
  }
}

}  // namespace
}  // namespace ostro
