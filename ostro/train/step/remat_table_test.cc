#include "ostro/train/step/remat_table.h"

#include <doctest/doctest.h>

#include <map>
#include <sstream>

#include "ostro/cpu/engine/engine.h"
#include "ostro/interp/engine/engine.h"

namespace ostro::train {
namespace {

CanonicalPrograms tiny_programs() {
  const std::vector<config::Override> settings = {
      {"data.train_urls", "[text]"},    {"model.seq_len", "32"},         {"model.hidden_dim", "32"},
      {"model.intermediate_dim", "64"}, {"model.num_layers", "8"},       {"model.num_heads", "2"},
      {"model.num_kv_heads", "2"},      {"numerics.leaf_examples", "4"}, {"trainer.train_batch_size", "8"}};
  auto config = load_train_config("", settings);
  REQUIRE_MESSAGE(config.ok(), (config.ok() ? "" : config.error().message()));
  return make_programs(*config, config->model_options().functions(64, compute_dtype(*config))).value();
}

TEST_CASE("remat table: policies of the model's labels, the configured one marked") {
  const CanonicalPrograms programs = tiny_programs();
  const auto policies = remat_policies(programs, "none");
  REQUIRE(policies.size() > 3);
  CHECK(policies[0] == "keep");
  CHECK(policies[1] == "none");
  CHECK(policies[2] == "all");
  CHECK(policies[3] == "save:qkv");
  CHECK(remat_policies(programs, "save:qkv") == policies);
  CHECK(remat_policies(programs, "save:qkv,gate_up").size() == policies.size() + 1);
}

TEST_CASE("remat table: keeping less takes less memory and more arithmetic") {
  const CanonicalPrograms programs = tiny_programs();
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  const WorkerLoad load{.leaves = 2, .owned = 3 << 20, .gradients = 2 << 20, .partials = 2};
  const auto table = remat_table(programs, **engine, programs.leaf, "all", load, 0);
  REQUIRE(table.ok());
  std::istringstream lines(*table);
  std::map<std::string, std::array<double, 4>> rows;  // peak, arena, GFLOP, recomputed
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string policy;
    std::array<double, 4> row{};
    if (words >> policy >> row[0] >> row[1] >> row[2] >> row[3]) rows[policy] = row;
    CHECK((line.find("this config") != std::string::npos) == (policy == "all"));
  }
  CHECK(rows.size() == remat_policies(programs, "all").size());
  for (const auto& [policy, row] : rows) {
    CHECK_MESSAGE(row[0] - row[1] == doctest::Approx(5.0).epsilon(0.05), policy);
    CHECK_MESSAGE(row[1] <= rows["keep"][1], policy);
    CHECK_MESSAGE(row[3] >= 0, policy);
  }
  CHECK(rows["none"][1] < 0.8 * rows["keep"][1]);
  CHECK(rows["all"][1] < rows["keep"][1] / 2);
  CHECK(rows["all"][3] > 5);
  CHECK(rows["save:attention"][3] < rows["all"][3]);  // its log-sum-exp is kept, too
}

TEST_CASE("an engine's estimate is what its executable says") {
  const CanonicalPrograms programs = tiny_programs();
  auto cpu = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(cpu.ok());
  const auto interpreter = interp::make_interpreter();
  for (runtime::Engine* engine : {cpu->get(), interpreter.get()}) {
    const auto estimate = engine->estimate(programs.leaf, {.donate = {}, .remat = "all"});
    const auto executable = engine->compile(programs.leaf, {.donate = {}, .remat = "all"});
    REQUIRE(estimate.ok());
    REQUIRE(executable.ok());
    const runtime::ExecutableInfo info = (*executable)->info();
    CHECK(estimate->arena_bytes == info.arena_bytes);
    CHECK(estimate->input_bytes == info.input_bytes);
    CHECK(estimate->output_bytes == info.output_bytes);
    CHECK(estimate->flops == info.flops);
    CHECK(estimate->kernels == info.kernels);
  }
}

}  // namespace
}  // namespace ostro::train
