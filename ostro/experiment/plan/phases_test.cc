#include "ostro/experiment/plan/phases.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ostro/io/files/local_file_system.h"

namespace ostro::lab {
namespace {

const std::string kPhasedSteps = R"(lab: a
question: Why?
steps:
  texts: {corpus: {kind: web, documents: 10}}
  words: {tokenizer: {from: $texts, vocab_size: 300}}
  web: {tokens: {from: $texts, held_out: $texts, tokenizer: $words}}
  hq: {tokens: {from: $texts, held_out: $texts, tokenizer: $words}}
  base:
    sweep: {rate: [0.1, 0.2]}
    train:
      data: {web: $web}
      config: c.yaml
      phases:
        - {name: long, to: 100, workers: 2}
        - {name: short, to: 102, data: {hq: $hq}, set: {optimizer.learning_rate: $rate}}
)";

Result<Plan> phased_plan(const std::string& old = "", const std::string& now = "") {
  std::string text = kPhasedSteps;
  if (!old.empty()) {
    REQUIRE(text.find(old) != std::string::npos);
    text.replace(text.find(old), old.size(), now);
  }
  const auto path =
      std::filesystem::temp_directory_path() / ("ostro_phases_test_" + std::to_string(::getpid()));
  std::ofstream(path) << text;
  auto plan = read_plan(io::local_file_system(), path.string());
  std::filesystem::remove(path);
  return plan;
}

TEST_CASE("phases of a plan: steps, options with a sweep's value, and data that are inputs of the training") {
  auto plan = phased_plan();
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  const Step& base = *plan->find("base[rate=0.2]");
  CHECK(base.inputs == std::map<std::string, std::string>{{"data.web", "web"}, {"data.hq", "hq"}});
  std::vector<Phase> phases = phases_of(*plan, base);
  REQUIRE(phases.size() == 2);
  CHECK((phases[0].from == 0 && phases[0].to == 100 && phases[0].workers == 2 && phases[0].adds.empty()));
  CHECK((phases[1].from == 100 && phases[1].to == 102 && !phases[1].workers));
  CHECK(phases[1].adds == std::vector<std::string>{"hq"});
  CHECK(config::flow_text(phases[1].set) == "{optimizer.learning_rate: 0.2}");
  CHECK(phase_lines(*plan, base)[1] == "phase short: steps 101 to 102, with hq; optimizer.learning_rate 0.2");
  plan->sanity = true;
  phases = phases_of(*plan, *plan->find("base[rate=0.1]"));
  CHECK((phases[0].to == kSanityPhaseSteps && phases[1].from == kSanityPhaseSteps));
  CHECK(phases[1].to == kSanityPhaseSteps + 2);
  CHECK(phases_of(*plan, *plan->find("web")).empty());
}

TEST_CASE("mistakes in phases name the phase and what is allowed") {
  const auto error = [](const std::string& old, const std::string& now) {
    const auto plan = phased_plan(old, now);
    return plan.ok() ? std::string() : plan.error().message();
  };
  const auto has = [](const std::string& text, const char* wanted) {
    return text.find(wanted) != std::string::npos;
  };
  CHECK(
      has(error("to: 102", "to: 100"), "phase short: to: expected the step after which it ends, above 100"));
  CHECK(has(error("workers: 2", "workers: 0"), "phase long: workers: expected a number from 1 to 1024"));
  CHECK(has(error("name: short", "name: long"), "phases: long is there twice"));
  CHECK(has(error("{name: short, ", "{"), "phases: a phase has no name"));
  CHECK(has(error("hq: $hq}", "web: $hq}"), "phases: data: web is there already"));
  CHECK(has(error("data: {web: $web}", "data: $web"), "is added to the map that the training has"));
  CHECK(has(error("hq: $hq}", "hq: $words}"), "data.hq: words is not of kind tokens"));
  CHECK(has(error("optimizer.learning_rate: $rate", "optimizer.schedule_from: 7"),
            "phase short: set: optimizer.schedule_from follows from the phases; leave it out"));
  CHECK(has(error("optimizer.learning_rate: $rate", "trainer.seed: $seed"), "no variable"));
}

}  // namespace
}  // namespace ostro::lab
