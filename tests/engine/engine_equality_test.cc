// The compiled engine gives the interpreter's bits, op by op and for the parts models are made of.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>

#include <filesystem>
#include <numeric>
#include <string>

#include "ostro/base/log.h"
#include "ostro/base/test_size.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/ir/program/builder.h"
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
  REQUIRE_MESSAGE(engine.ok(), engine.error().message());
  const auto reference = interp::make_interpreter();
  for (const auto& [name, program, finite_only] : testing::op_programs())
    for (bool wild : {false, true}) {
      if (wild && finite_only) continue;
      const std::vector<Buffer> inputs = testing::make_inputs(program, wild ? 2 : 1, wild);
      const std::string d =
          testing::difference(run(*reference, program, inputs), run(**engine, program, inputs));
      CHECK_MESSAGE(d.empty(), name, std::string(wild ? " (wild): " : ": "), d);
    }
}

}  // namespace

TEST_CASE("built-in loops alone give the interpreter's bits") {
  check_engine({.isa = "generic", .threads = 2, .generated_code = false});
}

TEST_CASE("generated kernels, one per op, give the interpreter's bits") {
  check_engine({.threads = 2, .compiler_required = true, .fuse = false});
}

TEST_CASE("kernels in plain C give the interpreter's bits") {
  check_engine({.threads = 2, .compiler_required = true, .dialect = "plain"});
  CHECK(cpu::make_cpu_engine({.dialect = "pascal"}).error().message() ==
        "dialect \"pascal\"; use gnu or plain");
}

TEST_CASE("fused kernels give the interpreter's bits") {
  check_engine({.threads = 2, .compiler_required = true});
}

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
  auto slow = cpu::make_cpu_engine({.threads = 1, .cc_opt = "-O1", .compiler_required = true});
  REQUIRE(slow.ok());
  CHECK(testing::difference(expected, run(**slow, program, inputs)) == "");
}

TEST_CASE("results take the memory of parameters that were given away") {
  const auto programs = testing::op_programs();
  const ir::Program& program = program_named(programs, "adamw");
  const auto expected = run(*interp::make_interpreter(), program, testing::make_inputs(program, 1, false));
  auto engine = cpu::make_cpu_engine({.threads = 2, .compiler_required = true});
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

TEST_CASE("kernels in plain C give the interpreter's bits") {
  check_engine({.threads = 2, .compiler_required = true, .dialect = "plain"});
  CHECK(cpu::make_cpu_engine({.dialect = "pascal"}).error().message() ==
        "dialect \"pascal\"; use gnu or plain");
}

TEST_CASE("fused kernels give the interpreter's bits when all inputs are given away") {
  auto engine = cpu::make_cpu_engine({.threads = 2, .compiler_required = true});
  REQUIRE(engine.ok());
  const auto reference = interp::make_interpreter();
  for (const auto& [name, program, finite_only] : testing::op_programs()) {
    runtime::CompileOptions options;
    options.donate.resize(program.body.params.size());
    std::iota(options.donate.begin(), options.donate.end(), 0);
    auto executable = (*engine)->compile(program, options);
    REQUIRE(executable.ok());
    auto results = (*executable)->run(testing::make_inputs(program, 1, false));
    REQUIRE(results.ok());
    const std::string d =
        testing::difference(run(*reference, program, testing::make_inputs(program, 1, false)), *results);
    CHECK_MESSAGE(d.empty(), name, ": ", d);
  }
}

namespace {

// Every function of one f32 on `count` patterns from `first` on, `step` apart.
void check_functions(uint64_t first, uint64_t step, int64_t count) {
  auto engine = cpu::make_cpu_engine({.threads = 2, .compiler_required = true});
  REQUIRE(engine.ok());
  const auto reference = interp::make_interpreter();
  const ir::Shape shape{ir::DType::f32, {{"n", count}}};
  Buffer patterns = Buffer::empty(shape);
  for (int64_t i = 0; i < count; ++i)
    patterns.mutable_as<uint32_t>()[static_cast<size_t>(i)] =
        static_cast<uint32_t>(first + static_cast<uint64_t>(i) * step);
  for (int k = static_cast<int>(ir::OpKind::neg); k <= static_cast<int>(ir::OpKind::floor); ++k) {
    ir::Program p;
    p.name = ir::op_name(static_cast<ir::OpKind>(k));
    ir::Builder b(p.body);
    const ir::ValueId x = p.body.add_param(shape);
    const ir::ValueId y = b.add(static_cast<ir::OpKind>(k), {x});
    p.body.results = {y, b.cast(y, ir::DType::bf16)};
    const std::string d = testing::difference(run(*reference, p, {patterns}), run(**engine, p, {patterns}));
    CHECK_MESSAGE(d.empty(), p.name, ": ", d);
  }
}

}  // namespace

TEST_CASE("functions in C equal numerics on a sample of all f32") { check_functions(77, 40009, 107000); }

// Every 1511th f32, spread over all exponents, from a drawn one on; every 211th in a full run, all of them
// (some 20 minutes) in an exhaustive one.
TEST_CASE("slow: functions in C equal numerics on f32 of every exponent") {
  const uint64_t stride = sized<uint64_t>(1511, 211, 1), drawn = sized<uint64_t>(test_seed() % stride, 0, 0);
  MESSAGE("drawn: ", drawn, ", stride ", stride);
  for (uint64_t first = 0; first < 256; ++first)
    check_functions((first << 24) + (first + drawn) % stride, stride, (uint64_t{1} << 24) / stride);
}

TEST_CASE("slow: fused kernels for AVX2 give the interpreter's bits") {
  check_engine({.isa = "avx2", .threads = 3, .compiler_required = true});
}

TEST_CASE("a damaged object is compiled again; no compiler, or one that fails, means built-in loops") {
  namespace fs = std::filesystem;
  const fs::path cache =
      fs::temp_directory_path() / ("ostro-engine-test-cache-" + std::to_string(::getpid()));
  fs::remove_all(cache);
  const auto programs = testing::op_programs();
  const ir::Program& program = program_named(programs, "softmax");
  const auto inputs = testing::make_inputs(program, 1, false);
  const auto expected = run(*interp::make_interpreter(), program, inputs);
  const auto check = [&](const std::string& cc, const std::string& cc_opt = "") {
    cpu::CpuOptions options{.threads = 1, .cache_dir = cache.string(), .cc = cc, .cc_opt = cc_opt};
    auto engine = cpu::make_cpu_engine(options);
    REQUIRE(engine.ok());
    CHECK(testing::difference(expected, run(**engine, program, inputs)) == "");
    CHECK(testing::difference(expected, run(**engine, program, inputs)) == "");
    options.compiler_required = true;
    engine = cpu::make_cpu_engine(options);
    return engine.ok() && (*engine)->compile(program).ok();
  };
  CHECK(check(""));
  int objects = 0;
  for (const auto& entry : fs::directory_iterator(cache / "kernels"))
    if (entry.path().extension() == ".so") {
      ++objects;
      fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
    }
  CHECK(objects == 1);
  CHECK(check(""));
  int warnings = 0;
  const LogSink before =
      set_log_sink([&](LogLevel level, std::string_view) { warnings += level == LogLevel::kWarning; });
  CHECK(!check("/nonexistent/cc"));
  CHECK(warnings == 1);
  CHECK(!check("", "-march=nonesuch"));
  CHECK(warnings == 2);
  set_log_sink(before);
  fs::remove_all(cache);
}

}  // namespace ostro
