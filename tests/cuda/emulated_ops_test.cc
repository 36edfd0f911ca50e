// The engine for GPUs on the emulated device gives the interpreter's bits, op by op and for the parts models
// are made of.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "ostro/base/test_size.h"
#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/cuda/engine/routine_table.h"
#include "ostro/gpu/emulated/emulated_device.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/ir/program/program.h"
#include "tests/engine/programs.h"

namespace ostro {
namespace {

using runtime::Buffer;

gpu::Device& device_of(const gpu::EmulationOptions& options) {
  auto device = gpu::emulated_device(options);
  REQUIRE_MESSAGE(device.ok(), device.error().message());
  return **device;
}

std::vector<Buffer> on_host(const std::vector<Buffer>& buffers) {
  auto near = runtime::all_to(buffers, runtime::host_memory());
  REQUIRE_MESSAGE(near.ok(), near.error().message());
  return *near;
}

bool has_branch(const ir::Block& block) {
  return std::any_of(block.ops.begin(), block.ops.end(), [](const ir::Op& op) {
    return op.kind == ir::OpKind::cond || std::any_of(op.regions.begin(), op.regions.end(), has_branch);
  });
}

// Empty when a program, which was run, holds what was planned. `held`: what it has in use. Of a branch both
// sides are planned.
std::string held_differently(const ir::Program& program, const runtime::ExecutableInfo& info, int64_t held) {
  const int64_t planned = info.kept_bytes + std::max<int64_t>(1, info.arena_bytes);
  if (held == planned || (has_branch(program.body) && held < planned)) return "";
  return fmt::format("it holds {} bytes, {} were planned", held, planned);
}

// Empty when the engine gives the interpreter's bits, and the program holds the memory that was planned.
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
  const int64_t before = engine.memory().use().now;
  auto executable = engine.compile(program, options);
  if (!executable.ok()) return executable.error().message();
  auto given = runtime::all_to(inputs, engine.memory());
  if (!given.ok()) return given.error().message();
  for (int again = 0; again < 2; ++again) {  // the second time tables and arena are there
    auto got = (*executable)->run(give_away && again == 1 ? std::move(*given) : *given);
    if (!got.ok()) return got.error().message();
    if (std::string d = testing::difference(*expected, on_host(*got)); !d.empty()) return d;
  }
  given->clear();
  return held_differently(program, (*executable)->info(), engine.memory().use().now - before);
}

bool is_one_elementwise_op(const ir::Program& program) {
  return program.body.ops.size() == 1 && ir::is_elementwise(program.body.ops[0].kind);
}

// The programs beside each other in one, so that there is one text to compile.
ir::Program joined(const std::vector<testing::NamedProgram>& programs) {
  ir::Program all;
  all.name = "joined";
  for (const testing::NamedProgram& p : programs) {
    const ir::Block& body = p.program.body;
    const auto first = static_cast<ir::ValueId>(all.body.values.size());
    all.body.values.insert(all.body.values.end(), body.values.begin(), body.values.end());
    for (const ir::ValueId v : body.params) all.body.params.push_back(v + first);
    for (ir::Op op : body.ops) {
      for (ir::ValueId& v : op.operands) v += first;
      for (ir::ValueId& v : op.results) v += first;
      all.body.ops.push_back(std::move(op));
    }
    for (const ir::ValueId v : body.results) all.body.results.push_back(v + first);
  }
  return all;
}

void check_program(runtime::Engine& engine, const std::string& name, const ir::Program& program,
                   bool finite_only, bool give_away) {
  for (bool wild : {false, true}) {
    if (wild && finite_only) continue;
    const std::string d =
        differs(engine, program, testing::make_inputs(program, wild ? 2 : 1, wild), give_away);
    CHECK_MESSAGE(d.empty(), name, std::string(wild ? " (wild): " : ": "), d);
  }
}

// Every `stride`-th program, from a drawn one on.
void check_ops(runtime::Engine& engine, bool give_away, size_t stride) {
  std::vector<testing::NamedProgram> all = testing::op_programs(), simple;
  const size_t drawn = test_seed() % stride;
  for (size_t i = 0; i < all.size(); ++i) {
    testing::NamedProgram& p = all[i];
    if (is_one_elementwise_op(p.program)) {
      simple.push_back(std::move(p));
      continue;
    }
    if (i % stride == drawn) check_program(engine, p.name, p.program, p.finite_only, give_away);
  }
  REQUIRE(simple.size() > 100);
  for (size_t i = 0; i < simple.size() && stride == 1; i += 50) {
    const std::vector<testing::NamedProgram> some(
        simple.begin() + static_cast<int64_t>(i),
        simple.begin() + static_cast<int64_t>(std::min(i + 50, simple.size())));
    check_program(engine, some.front().name + " to " + some.back().name, joined(some), false, give_away);
  }
}

TEST_CASE("an op without device text is an error that names it, not a computation on the host") {
  using ir::OpKind;
  const std::set<OpKind> without = {OpKind::constant, OpKind::broadcast,  OpKind::transpose,
                                    OpKind::rename,  // no op of a plan
                                    OpKind::slice,    OpKind::split_axis, OpKind::merge_axes,
                                    OpKind::split,  // views and copies
                                    OpKind::unstack,  OpKind::reverse,    OpKind::scan,
                                    OpKind::cond,     // loops, branches
                                    OpKind::custom};  // inlined
  for (int i = 0; i < ir::kOpCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (ir::is_elementwise(kind)) continue;  // generated kernels
    CHECK_MESSAGE((cuda::step_routine(kind) == nullptr) == (without.count(kind) != 0), ir::op_name(kind));
  }
  compile::Plan plan;
  plan.steps.emplace_back();
  plan.steps[0].op = OpKind::custom;
  plan.steps[0].scope = "layers/mlp";
  const Status lacking = cuda::check_supported(plan, "leaf");
  REQUIRE(!lacking.ok());
  CHECK(lacking.error().code() == ErrorCode::kUnsupported);
  for (const char* word : {"leaf", "layers/mlp", "custom"})
    CHECK(lacking.error().message().find(word) != std::string::npos);
}

TEST_CASE("a device without room is an error") {
  const ir::Shape shape{ir::DType::f32, {{"n", 100}}};
  gpu::Device& device = device_of({.memory_bytes = 300});
  CHECK(runtime::Buffer::zeros(shape).to(device.memory()).error().message() ==
        "the emulated device has no room for 400 bytes: 300 are left");
}

TEST_CASE("every op gives the interpreter's bits on the emulated device") {
  check_ops(*cuda::make_device_engine(device_of({.seed = 3})), true, 1);
}

TEST_CASE("plain kernels give the interpreter's bits on the emulated device, too") {
  check_ops(*cuda::make_device_engine(device_of({.seed = 5}), {.fast = {}}), true, sized<size_t>(4, 1, 1));
}

TEST_CASE("kernels of one op each give the interpreter's bits on the emulated device") {
  check_ops(*cuda::make_device_engine(device_of({.seed = 4}), {.fuse = false}), false,
            sized<size_t>(4, 1, 1));
}

}  // namespace
}  // namespace ostro
