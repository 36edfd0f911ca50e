// What `ostro train` says and writes besides the run itself: plans and profiles.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ostro/cli/main/shell_for_test.h"

namespace ostro::cli {
namespace {

// c.yaml: two layers on a text of a few lines, all in the folder.
void write_small_config(const Folder& folder) {
  std::ofstream text(folder / "a.txt");
  for (int i = 0; i < 400; ++i) text << "the cat and the hat and the bat " << i << '\n';
  text.close();
  REQUIRE(shell("$OSTRO tokenizer train --vocab_size 270 --out " + (folder / "t.json") + " --input " +
                (folder / "a.txt"))
              .code == 0);
  std::ofstream(folder / "c.yaml")
      << "data: {tokenizer: " + (folder / "t.json") + ", train_urls: [" + (folder / "a.txt") +
             "], cache_dir: " + (folder / "cache") +
             "}\nmodel: {type: llama, seq_len: 64, hidden_dim: 128, intermediate_dim: 256, num_layers: 2, "
             "num_heads: 2, num_kv_heads: 1}\ntrainer: {train_batch_size: 4, log_dir: " +
             (folder / "runs") + "}\n";
}

TEST_CASE("the plan that is shown and measured is the one that a run has") {
  const Folder folder;
  write_small_config(folder);
  const auto run = [&](const std::string& isa, const std::string& words) {
    const Outcome o = shell("export OSTRO_THREADS=1 OSTRO_ISA=" + isa + "; $OSTRO " + words + " --config " +
                            (folder / "c.yaml") + " 2>&1");
    CHECK_MESSAGE(o.code == 0, o.out);
    return o.out;
  };
  // What stands between `word`, behind the first `begin`, and the end of its line or a comma.
  const auto value = [](const std::string& out, const std::string& begin, const std::string& word) {
    const size_t line = out.find(begin), at = out.find(word, line);
    REQUIRE_MESSAGE(line != std::string::npos, out);
    REQUIRE_MESSAGE(at != std::string::npos, out);
    const size_t first = at + word.size();
    return out.substr(first, out.find_first_of(",\n", first) - first);
  };
  std::vector<std::string> leaf_arenas;
  for (const std::string isa : {"generic", ""}) {
    CAPTURE(isa);
    const std::string dry = run(isa, "train --dry_run");
    const std::string plan = run(isa, "program --stage plan --explain --measure");
    CHECK(plan.find("engine: cpu (" + isa) == 0);
    CHECK(plan.find("did not run") == std::string::npos);
    for (const std::string program : {"leaf", "update"})
      CHECK(value(plan, "\n" + program + ": ", "arena ") == value(dry, "\n  " + program + " ", "arena "));
    leaf_arenas.push_back(value(plan, "\nleaf: ", "arena "));
  }
  // The engines do not plan alike, so that to show one for the other would be seen.
  CHECK(leaf_arenas[0] != leaf_arenas[1]);
  CHECK(shell("OSTRO_EXECUTOR=interpreter $OSTRO program --stage plan --config " + (folder / "c.yaml") +
              " 2>&1 >/dev/null")
            .out.find("use OSTRO_EXECUTOR=compiled") != std::string::npos);
}

TEST_CASE("program --stage canonical prints what the chain's hash of the programs is over") {
  const Folder folder;
  write_small_config(folder);
  const std::string config = " --config " + (folder / "c.yaml");
  const Outcome trained = shell("$OSTRO train --trainer.num_train_steps 1" + config + " 2>&1");
  REQUIRE_MESSAGE(trained.code == 0, trained.out);
  const std::string genesis = shell("head -n 1 " + (folder / "runs") + "/*/chain.jsonl").out;
  const std::string hash = nlohmann::json::parse(genesis).at("program");
  const std::string print = "$OSTRO program --trainer.num_train_steps 1" + config + " --stage ";
  CHECK(shell(print + "canonical | sha256sum").out == hash + "  -\n");
  CHECK(shell(print + "grad | sha256sum").out != hash + "  -\n");
}

int64_t nanoseconds(const nlohmann::json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

TEST_CASE("train --profile writes a trace of the steps, whose kernels are named by the model's path") {
  const Folder folder;
  write_small_config(folder);
  const auto train = [&](const std::string& words) {
    return shell("export OSTRO_THREADS=2 OSTRO_ISA=; $OSTRO train --trainer.num_train_steps 3 --config " +
                 (folder / "c.yaml") + " " + words + " 2>&1");
  };
  const auto refuses = [&](const std::string& words, const std::string& message) {
    const Outcome o = train(words);
    CHECK_MESSAGE(o.code == 2, o.out);
    CHECK(o.out == "error: --profile" + message + "\n");
  };
  refuses("--profile steps=1:4",
          " steps=1:4: trainer.num_train_steps is 3, so the last step is 2 and END at most 3");
  refuses("--profile steps=2:2",
          " steps=2:2: no step is from 2 on and before 2; END is the first step that is not profiled any "
          "more, steps=2:3 one step");
  refuses(
      "--profile 1:3",
      " 1:3: give the steps as steps=FIRST:END, two numbers; steps=10:13 profiles the steps 10, 11 and 12");
  for (const std::string range : {"steps=1:3", "nonsense"})
    refuses("--dry_run --profile " + range, ": --dry_run does no step; leave out one of them");
  CHECK_FALSE(std::filesystem::exists(folder / "runs"));

  const Outcome done = train("--profile steps=1:3");
  REQUIRE_MESSAGE(done.code == 0, done.out);
  const std::string path = shell("ls " + (folder / "runs") + "/*/profile-1-3.json").out;
  CHECK_MESSAGE(
      done.out.find("profile: " + path.substr(0, path.size() - 1) + " (open it in ") != std::string::npos,
      done.out);
  const auto trace = nlohmann::json::parse(shell("cat " + path).out);
  int thread = -1;
  for (const auto& e : trace.at("traceEvents"))
    if (e.at("name") == "thread_name" && e.at("args").at("name") == "training") thread = e.at("tid");
  std::vector<std::string> steps, ops, kernels;
  int64_t step_time = 0, phase_time = 0;
  for (const auto& e : trace.at("traceEvents")) {
    if (e.at("ph") != "X" || e.at("tid") != thread) continue;
    const std::string name = e.at("name"), category = e.at("cat");
    if (category == "step") steps.push_back(name), step_time += nanoseconds(e.at("dur"));
    if (category == "phase") phase_time += nanoseconds(e.at("dur"));
    if (category == "op") ops.push_back(name);
    if (category == "kernel") kernels.push_back(name);
  }
  CHECK(steps == std::vector<std::string>{"ProfilerStep#1", "ProfilerStep#2"});
  CHECK(step_time > 0);
  CHECK(phase_time == step_time);
  CHECK(std::count(ops.begin(), ops.end(), "layers/mlp dot") > 0);
  CHECK(std::count(kernels.begin(), kernels.end(), "layers/mlp sigmoid+mul") > 0);
}

}  // namespace
}  // namespace ostro::cli
