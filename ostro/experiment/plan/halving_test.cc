#include "ostro/experiment/plan/halving.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "ostro/io/files/local_file_system.h"

namespace ostro::lab {
namespace {

const std::string kHalvedPlan = R"(lab: a
question: Why?
steps:
  texts: {corpus: {kind: web, documents: 10}}
  words: {tokenizer: {from: $texts, vocab_size: 300}}
  rows: {tokens: {from: $texts, held_out: $texts, tokenizer: $words}}
  score: {eval: {of: $base}}
  base:
    sweep: {rate: [0.1, 0.2, 0.3], seed: [1, 2]}
    halving: {keep: 1/2, at: [200, 600]}
    train: {data: $rows, config: c.yaml, set: {optimizer.learning_rate: $rate, trainer.seed: $seed}}
)";

Result<Plan> halved_plan(const std::string& old = "", const std::string& now = "") {
  std::string text = kHalvedPlan;
  if (!old.empty()) {
    REQUIRE(text.find(old) != std::string::npos);
    text.replace(text.find(old), old.size(), now);
  }
  const auto path =
      std::filesystem::temp_directory_path() / ("ostro_halving_test_" + std::to_string(::getpid()));
  std::ofstream(path) << text;
  auto plan = read_plan(io::local_file_system(), path.string());
  std::filesystem::remove(path);
  return plan;
}

TEST_CASE(
    "a halved sweep: a training up to each rung, its evaluation, the rung, and the training to its end") {
  auto plan = halved_plan();
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  using Inputs = std::map<std::string, std::string>;
  const Step& first = *plan->find("base-200[rate=0.2,seed=1]");
  CHECK(first.inputs == Inputs{{"data", "rows"}});
  CHECK(rung_step(*plan, first) == 200);
  const Step& second = *plan->find("base-600[rate=0.2,seed=1]");
  CHECK(second.inputs ==
        Inputs{{"data", "rows"}, {"begun", "base-200[rate=0.2,seed=1]"}, {"rung", "base-200-rung"}});
  CHECK(rung_step(*plan, second) == 600);
  const Step& last = *plan->find("base[rate=0.2,seed=1]");
  CHECK(last.inputs ==
        Inputs{{"data", "rows"}, {"begun", "base-600[rate=0.2,seed=1]"}, {"rung", "base-600-rung"}});
  CHECK(!rung_step(*plan, last));
  for (const Step* step : {&first, &second, &last}) {
    CHECK(step->parameters.find("set")->find("optimizer.learning_rate")->text == "0.2");
    CHECK(step->where == plan->find("base[rate=0.1,seed=1]")->where);
  }
  const Step& rung = *plan->find("base-600-rung");
  CHECK(rung.inputs.size() == 6);
  CHECK(rung.inputs.contains("base-600-eval[rate=0.3,seed=2]"));
  CHECK(rung.parameters.find("keep")->text == "1/2");
  CHECK(plan->find("score[rate=0.2,seed=1]")->inputs.at("of") == last.name);
  CHECK(plan->steps.size() == 3 + 3 * 6 + 2 * 6 + 2 + 6);
  CHECK(is_part_of_halving(*plan, second));
  CHECK(is_part_of_halving(*plan, *plan->find("base-200-eval[rate=0.1,seed=1]")));
  CHECK(!is_part_of_halving(*plan, last));
  CHECK(!is_part_of_halving(*plan, *plan->find("score[rate=0.1,seed=1]")));
  CHECK(!is_part_of_halving(*plan, rung));
  plan->sanity = true;  // the rungs are at its first steps
  CHECK(rung_step(*plan, first) == 1);
  CHECK(rung_step(*plan, second) == 2);
  CHECK(!rung_step(*plan, last));
}

TEST_CASE("two halved sweeps of one plan, in one line, keep to themselves") {
  auto plan =
      halved_plan("  score: {eval: {of: $base}}\n",
                  "  score: {eval: {of: $base}}\n"
                  "  other: {sweep: {rate: [0.1, 0.2, 0.3], seed: [1, 2]}, halving: {keep: 1/3, at: [200]}, "
                  "train: {data: $rows, config: c.yaml, set: {optimizer.learning_rate: $rate, "
                  "trainer.seed: $seed}}}\n");
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  for (Step& step : plan->steps) step.where = "one place";  // as in a plan in flow style
  const auto names = [&](const std::string& of) {
    std::string out;
    for (const Step* part : parts_of_member(*plan, *plan->find(of))) out += part->name + " ";
    return out;
  };
  const std::string base = "base-200[rate=0.1,seed=2] base-600[rate=0.1,seed=2] base[rate=0.1,seed=2] ";
  for (const char* part : {"base-200", "base-600", "base"})
    CHECK(names(std::string(part) + "[rate=0.1,seed=2]") == base);
  CHECK(names("other[rate=0.1,seed=2]") == "other-200[rate=0.1,seed=2] other[rate=0.1,seed=2] ");
  const Step& rung = *plan->find("other-200-rung");
  CHECK(rung.parameters.find("keep")->text == "1/3");
  CHECK(rung.inputs.size() == 6);
  for (const auto& [unused, input] : rung.inputs) CHECK(input.starts_with("other-200-eval["));
}

TEST_CASE("the share that a rung keeps is exact, and never nobody") {
  const auto kept = [](const std::string& text, int64_t members) {
    const auto share = KeptShare::parse(text);
    REQUIRE_MESSAGE(share, text);
    return share->kept(members);
  };
  CHECK(kept("1/3", 9) == 3);
  CHECK(kept("1/3", 8) == 2);
  CHECK(kept("1/3", 2) == 1);
  CHECK(kept("1/3", 1) == 1);
  CHECK(kept("2/4", 5) == 2);
  CHECK(kept("0.29", 100) == 29);  // in doubles 28.999...
  CHECK(kept(".5", 4) == 2);
  CHECK(KeptShare::parse("2/4")->text() == "1/2");
  CHECK(KeptShare::parse("0.50")->text() == "1/2");
  for (const char* wrong : {"", "0", "1", "1/1", "0/3", "4/3", "1.5", "0.0", "-1/3", "1/-3", "1/", "/3", "a",
                            "1/3/4", "0x1/3", "1/0", "1e-1", " 1/3", "1/99999999999999999999"})
    CHECK_MESSAGE(!KeptShare::parse(wrong), wrong);
}

TEST_CASE("mistakes of a halving are errors that name the line") {
  const std::string halving = "    halving: {keep: 1/2, at: [200, 600]}\n";
  const std::string train =
      "    train: {data: $rows, config: c.yaml, set: {optimizer.learning_rate: $rate, trainer.seed: "
      "$seed}}\n";
  struct Mistake {
    std::string old, now, message;
  };
  for (const Mistake& m : std::vector<Mistake>{
           {"keep: 1/2", "keep: 1", ":10: step base: halving.keep: expected a share above 0 and below 1"},
           {"keep: 1/2", "keep: 0.0", "halving.keep: expected a share"},
           {"keep: 1/2", "keep: [1]", "halving.keep: expected a share"},
           {"keep: 1/2, ", "", ":10: step base: halving.keep is missing"},
           {", at: [200, 600]", "", ":10: step base: halving.at is missing"},
           {"[200, 600]", "[]", "halving.at: expected a list of 1 to 16 steps"},
           {"[200, 600]", "200", "halving.at: expected a list"},
           {"[200, 600]", "[600, 200]", ":10: step base: halving.at: expected a step above 600, got 200"},
           {"[200, 600]", "[200, 200]", "expected a step above 200, got 200"},
           {"[200, 600]", "[0, 200]", "expected a step above 0, got 0"},
           {"[200, 600]", "[0.5]", "expected a step above 0, got 0.5"},
           {"keep: 1/2", "kept: 1/2", "unknown key \"kept\"; the nearest is \"keep\""},
           {"halving: {", "halvin: {", "unknown key \"halvin\"; the nearest is \"halving\""},
           {halving, "    halving: 3\n", ":10: step base: halving: expected a map"},
           {"    sweep: {rate: [0.1, 0.2, 0.3], seed: [1, 2]}\n", "",
            "step base: halving: the step has no sweep"},
           {train, "    fork: {of: $a, at: 3}\n", "step base: halving: is of trainings"},
           {"set: {opt", "flops: 1e9, set: {opt", "a training with flops cannot be halved"},
           {"set: {opt", "phases: [{name: a, to: 3}], set: {opt", "a training with phases cannot be halved"},
           {"set: {opt", "until: 3, set: {opt", ":11: step base: train.until: halving makes it"},
           {"set: {opt", "rung: $score, set: {opt", "train.rung: halving makes it"},
           {"  score: {eval: {of: $base}}", "  score: {rung: {of: [$base]}}",
            ":7: step score: rung: halving makes it"},
           {"of: $base}", "of: $base-200}",
            ":7: step score: $base-200: halving makes this step for itself; write $base, the training"},
           {"{eval: {of: $base}}", "{fit: {of: [$base-600-eval]}}",
            ":7: step score: $base-600-eval: halving makes this step for itself; write $base,"},
           {"  score: {", "  base-600-eval: {", "makes a step base-600-eval, which is there already: "}}) {
    const auto plan = halved_plan(m.old, m.now);
    REQUIRE_MESSAGE(!plan.ok(), m.now);
    INFO(m.now, ": ", plan.error().message());
    CHECK(plan.error().message().find(m.message) != std::string::npos);
  }
  CHECK(halved_plan("halving: {keep: 1/2, at: [200, 600]}", "halving: {keep: 0.5, at: [1]}").ok());
}

}  // namespace
}  // namespace ostro::lab
