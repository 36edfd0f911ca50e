#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ostro/experiment/plan/plan.h"
#include "ostro/io/files/local_file_system.h"

namespace ostro::lab {
namespace {

const std::string kScaling = R"(
  law:
    data: $rows
    config: c.yaml
    set: {optimizer.learning_rate: 0.01}
    sizes: {s: {model.hidden_dim: 8}, m: {model.hidden_dim: 16}, l: {model.hidden_dim: 32}}
    budgets: {1e7: [s, m], 2e7: [m], 3.5e7: [s, m, l]}
    seeds: 2
    target: {size: l, flops: 2e8, seeds: registration x 2}
)";

Result<Plan> scaled_plan(const std::string& scaling) {
  const auto path =
      std::filesystem::temp_directory_path() / ("ostro_scaling_test_" + std::to_string(::getpid()));
  std::ofstream(path) << "lab: a\nquestion: Why?\nsteps:\n"
                         "  rows: {tokens: {from: $texts, held_out: $texts, tokenizer: $words}}\n"
                         "  words: {tokenizer: {from: $texts, vocab_size: 300}}\n"
                         "  texts: {source: {files: [a], licence: MIT}}\nscaling:"
                      << scaling;
  auto plan = read_plan(io::local_file_system(), path.string());
  std::filesystem::remove(path);
  return plan;
}

std::string error_with(const std::string& from, const std::string& to) {
  std::string text = kScaling;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  const auto plan = scaled_plan(text.replace(at, from.size(), to));
  return plan.ok() ? "no error" : plan.error().message();
}

TEST_CASE("a scaling plan gives trainings, evaluations, a fit, a forecast and what checks it") {
  const auto plan = scaled_plan(kScaling);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  const auto count = [&](const char* kind) {
    return std::count_if(plan->steps.begin(), plan->steps.end(),
                         [&](const Step& step) { return step.kind->name == kind; });
  };
  CHECK(count("train") == 2 * 2 + 1 * 2 + 3 * 2 + 2);
  CHECK(count("eval") == 14);
  CHECK(count("fit") == 1);
  CHECK(count("forecast") == 1);
  const Step* run = plan->find("law-3_5e7[seed=2,size=l]");
  REQUIRE(run != nullptr);
  CHECK(config::flow_text(run->parameters) ==
        "{config: c.yaml, set: {optimizer.learning_rate: 0.01, model.hidden_dim: 32, trainer.seed: 2}, "
        "flops: 3.5e+07}");
  CHECK(plan->find("law-1e7[seed=1,size=l]") == nullptr);
  const Step* fit = plan->find("law-fit");
  REQUIRE(fit != nullptr);
  CHECK(fit->inputs.size() == 12);
  CHECK(fit->inputs.contains("law-1e7-eval[seed=1,size=s]"));
  CHECK(fit->labels.empty());
  const Step* target = plan->find("law-target[seed=1]");
  REQUIRE(target != nullptr);
  REQUIRE(checked_forecast(*target) != nullptr);
  CHECK(*checked_forecast(*target) == "law-forecast");
  CHECK(checked_forecast(*run) == nullptr);
  CHECK(config::flow_text(*plan->find("law-forecast")->parameters.find("runs")) == "2");
}

TEST_CASE("mistakes in a scaling plan are errors with their place") {
  CHECK(error_with("sizes:", "size:").find("unknown key \"size\"; the nearest is \"sizes\"") !=
        std::string::npos);
  CHECK(error_with("3.5e7: [s, m, l]", "3.5e7: [s, xl]").find("no size is called \"xl\"") !=
        std::string::npos);
  CHECK(error_with("3.5e7: [s, m, l]", "1e7: [s, m, l]").find("1e7 is there twice") != std::string::npos);
  CHECK(error_with("3.5e7: [s, m, l]", "-3: [s, m, l]").find("above 0") != std::string::npos);
  CHECK(error_with("3.5e7: [s, m, l]", "3.5e7: [s, l]").find("has 5 pairs of a size and a budget") !=
        std::string::npos);
  CHECK(error_with("seeds: 2", "seeds: many").find("expected a number from 1") != std::string::npos);
  CHECK(error_with("flops: 2e8", "flops: 3e7").find("3e7 is not larger than the budget 3_5e7") !=
        std::string::npos);
  CHECK(error_with(", l: {model.hidden_dim: 32}", "").find("at least 3 labels") != std::string::npos);
  CHECK(error_with("size: l, flops", "size: x, flops").find("no size is called \"x\"") != std::string::npos);
  for (const char* seeded :
       {"size: {model.hidden_dim: 64, trainer.seed: 3}, flops", "size: l, trainer.seed: 3, flops"})
    CHECK(error_with("size: l, flops", seeded).find("trainer.seed") != std::string::npos);
  CHECK(error_with("size: l, flops", "size: {model.hidden_dim: 64}, flops") == "no error");
  CHECK(error_with("data: $rows", "data: $row").find("no step is called \"row\"") != std::string::npos);
  CHECK(error_with("seeds: 2", "seeds: 2") == "no error");
}

}  // namespace
}  // namespace ostro::lab
