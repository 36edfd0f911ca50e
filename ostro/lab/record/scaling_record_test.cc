#include "ostro/lab/record/scaling_record.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/scaling/scaling.h"

namespace ostro::lab {
namespace {

Plan plan_with_target() {
  const auto path =
      std::filesystem::temp_directory_path() / ("ostro_scaling_record_test_" + std::to_string(::getpid()));
  std::ofstream(path) << R"(
lab: a
question: Why?
steps:
  rows: {tokens: {from: $texts, held_out: $texts, tokenizer: $words}}
  words: {tokenizer: {from: $texts, vocab_size: 300}}
  texts: {source: {files: [a], licence: MIT}}
scaling:
  law:
    data: $rows
    config: c.yaml
    sizes: {s: {model.hidden_dim: 8}, m: {model.hidden_dim: 16}, l: {model.hidden_dim: 32}}
    budgets: [1e7, 2e7]
    target: {size: l, flops: 2e8, seeds: 2}
)";
  auto plan = read_plan(io::local_file_system(), path.string());
  std::filesystem::remove(path);
  REQUIRE_MESSAGE(plan.ok(), (plan.ok() ? "" : plan.error().message()));
  return std::move(*plan);
}

// Verdict and observed loss of a forecast of 3.0, from 2.9 to 3.1, whose targets have these losses: NaN of
// one that diverged; nothing of one that is not done.
std::pair<std::string, std::string> outcome_of(const Plan& plan,
                                               const std::vector<std::optional<double>>& losses) {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("out"));
  scaling::ScalingForecast forecast;
  forecast.loss = {3.0, 2.9, 3.1};
  auto file = fs.create("out/forecast.json");
  REQUIRE(file.ok());
  check_ok((*file)->append(scaling::forecast_text(forecast)));
  auto record = Database::create(/*measured=*/false);
  REQUIRE(record.ok());
  LabState state;
  size_t target = 0;
  for (const Step& step : plan.steps) {
    StepState s{.step = &step, .action = Action::kSkip, .content = "c"};
    if (step.family == "law-target-eval") {
      const std::optional<double> loss = losses.at(target++);
      if (!loss) s.action = Action::kWait;
      const Value value = loss && *loss == *loss ? Value(*loss) : Value();
      if (loss)
        check_ok(record->insert("evaluations", {step.name, step.inputs.at("of"), int64_t{9}, "state", value,
                                                Value(), int64_t{7}}));
    }
    state.steps.push_back(std::move(s));
    state.made[step.name].folder = "out";
  }
  REQUIRE(target == losses.size());
  const auto registry = Registry::open(fs, "lab");
  const auto journal = Journal::open(fs, "lab");
  REQUIRE(registry.ok());
  REQUIRE(journal.ok());
  check_ok(add_forecasts(*record, fs, plan, state, *registry, *journal));
  const auto rows = record->select("SELECT verdict, observed FROM forecasts");
  REQUIRE(rows.ok());
  REQUIRE(rows->rows.size() == 1);
  return {value_text(rows->rows[0][0]), value_text(rows->rows[0][1])};
}

TEST_CASE("a target that diverged is outside of every forecast; one that is not done leaves it open") {
  const Plan plan = plan_with_target();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(outcome_of(plan, {3.0, 3.1}).first == "inside");
  CHECK(outcome_of(plan, {3.0, 3.5}).first == "outside");
  CHECK(outcome_of(plan, {3.0, nan}) == std::pair<std::string, std::string>("outside", ""));
  CHECK(outcome_of(plan, {nan, nan}) == std::pair<std::string, std::string>("outside", ""));
  CHECK(outcome_of(plan, {3.0, std::nullopt}).first == "open");
  CHECK(outcome_of(plan, {nan, std::nullopt}).first == "open");
}

}  // namespace
}  // namespace ostro::lab
