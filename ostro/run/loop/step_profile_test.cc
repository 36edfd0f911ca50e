// The trace of a small run: its spans nest and add up, and the run stays what it was.
#include "ostro/train/step/step_profile.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/cpu/engine/engine.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::train {
namespace {

using nlohmann::json;

std::string words(int number) {
  static const char* const kWords[] = {"sun ", "moon ", "star ", "sky.\n", "wind ", "rain "};
  std::string text;
  for (int i = 0; i < 60; ++i) text += kWords[(number * 5 + i * i) % 6];
  return text;
}

void write_files(io::FileSystem& fs) {
  check_ok(fs.make_dirs("corpus"));
  for (int i = 0; i < 20; ++i) check_ok(fs.write_file(fmt::format("corpus/{}.txt", i), words(i)));
  int next = 0;
  auto trained = tokenizer::train(
      [&](std::string& text) -> Result<bool> {
        text = words(next);
        return next++ < 20;
      },
      {.vocab_size = 270});
  REQUIRE(trained.ok());
  check_ok(tokenizer::save_tokenizer(fs, *trained, "tokenizer.json"));
}

TrainConfig config() {
  const std::vector<config::Override> settings = {
      {"data.train_urls", "[corpus]"},   {"data.validation_fraction", "0.2"},
      {"model.seq_len", "16"},           {"model.hidden_dim", "32"},
      {"model.intermediate_dim", "48"},  {"model.num_layers", "2"},
      {"model.num_heads", "4"},          {"model.num_kv_heads", "2"},
      {"trainer.train_batch_size", "6"}, {"trainer.num_train_steps", "5"},
      {"trainer.steps_per_eval", "2"},   {"trainer.checkpointer.keep", "[{every: 2}]"},
      {"numerics.leaf_examples", "2"}};
  auto c = load_train_config("", settings);
  REQUIRE_MESSAGE(c.ok(), (c.ok() ? "" : c.error().message()));
  return *c;
}

struct ProfiledRun {
  std::string hash;
  json trace;  // null: no file
};

ProfiledRun train(runtime::Engine& engine, std::optional<StepRange> profile, int64_t stop_after = 100,
                  int64_t workers = 1) {
  io::MemoryFileSystem fs;
  write_files(fs);
  const TrainConfig c = config();
  int64_t steps = 0;
  run::Environment environment{fs, engine, workers, [&] { return ++steps >= stop_after; }, {}, {}, profile};
  auto run = run::Run::open(c, environment);
  REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : run.error().message()));
  run::Watcher watcher;
  watcher.on_step = [](const run::StepReport&) {};
  const auto outcome = (*run)->train(watcher);
  REQUIRE_MESSAGE(outcome.ok(), (outcome.ok() ? "" : outcome.error().message()));
  ProfiledRun out{outcome->hash, nullptr};
  if (profile) {
    const auto text =
        fs.read_file(fmt::format("{}/profile-{}-{}.json", (*run)->directory(), profile->begin, profile->end));
    if (text.ok()) out.trace = json::parse(*text);
  }
  return out;
}

struct Event {
  std::string name, category;
  int64_t begin, end;  // ns
  json args;
};

int64_t nanoseconds(const json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }

// By thread, in the file's order. Checks that events of a thread nest and stand in order of their begin.
std::map<std::string, std::vector<Event>> events_of(const json& trace) {
  std::map<int, std::string> threads;
  std::map<std::string, std::vector<Event>> out;
  for (const json& e : trace.at("traceEvents")) {
    if (e.at("ph") == "M" && e.at("name") == "thread_name")
      threads[e.at("tid").get<int>()] = e.at("args").at("name").get<std::string>();
    if (e.at("ph") != "X") continue;
    const int64_t begin = nanoseconds(e.at("ts"));
    REQUIRE(threads.count(e.at("tid").get<int>()) == 1);
    out[threads.at(e.at("tid").get<int>())].push_back(
        {e.at("name"), e.at("cat"), begin, begin + nanoseconds(e.at("dur")), e.at("args")});
  }
  for (const auto& [thread, events] : out) {
    std::vector<int64_t> open;
    int64_t last = 0;
    for (const Event& e : events) {
      CHECK(e.begin >= last);
      last = e.begin;
      while (!open.empty() && open.back() <= e.begin) open.pop_back();
      if (!open.empty()) CHECK_MESSAGE(e.end <= open.back(), thread << ": " << e.name);
      open.push_back(e.end);
    }
  }
  return out;
}

TEST_CASE("profile: the phases of a step are the whole of it, its kernels lie inside, the hash stays") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 2, .generated_code = false});
  REQUIRE(engine.ok());
  const ProfiledRun with = train(**engine, StepRange{1, 4}), without = train(**engine, std::nullopt);
  CHECK(with.hash == without.hash);
  auto threads = events_of(with.trace);
  REQUIRE(threads.count("training") == 1);
  const std::vector<Event>& events = threads["training"];
  std::vector<Event> steps;
  for (const Event& e : events)
    if (e.category == "step") steps.push_back(e);
  REQUIRE(steps.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(steps[i].name == fmt::format("ProfilerStep#{}", i + 1));
    std::map<std::string, int> phases;
    int64_t at = steps[i].begin;
    for (const Event& e : events) {
      if (e.category != "phase" || e.begin < steps[i].begin || e.end > steps[i].end) continue;
      CHECK_MESSAGE(e.begin == at, e.name);  // no gap and no overlap
      at = e.end;
      ++phases[e.name];
    }
    CHECK(at == steps[i].end);
    for (const char* name : {"data wait", "update", "fingerprint", "chain append", "report"})
      CHECK_MESSAGE(phases[name] == 1, name);
    CHECK(phases["leaf"] == 3);
    CHECK(phases["tree add"] == 2);
    CHECK(phases["checkpoint snapshot"] == (i % 2 == 0 ? 1 : 0));  // after 2 and 4 steps
    CHECK(phases["evaluate"] == (i % 2 == 0 ? 1 : 0));
  }
  std::set<std::string> names, leaves, iterations, programs;
  for (const Event& e : events) {
    if (e.category != "op" || !e.args.contains("program")) continue;
    names.insert(e.name);
    programs.insert(e.args["program"].get<std::string>());
    if (e.args.contains("leaf")) leaves.insert(e.args["leaf"].dump());
    if (e.args.contains("iteration")) iterations.insert(e.args["iteration"].dump());
    if (e.name == "layers/mlp dot") {
      CHECK(e.args["flops"].get<double>() > 0);
      CHECK(e.args["bytes"].get<double>() > 0);
      CHECK(e.args["GFLOP/s"].get<double>() > 0);
      CHECK(e.args["out"].get<std::string>().find("[") != std::string::npos);
    }
  }
  for (const char* name : {"layers/mlp dot", "layers/attention attention_grad"})
    CHECK(names.count(name) == 1);
  CHECK(programs.count("leaf") + programs.count("add") + programs.count("update") == 3);
  CHECK(leaves == std::set<std::string>{"0", "1", "2"});
  CHECK(iterations == std::set<std::string>{"0", "1"});
}

TEST_CASE("profile: an interpreted run has phases, a run that stops leaves what there is") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  const auto count = [](const ProfiledRun& o) {
    std::map<std::string, int> categories;
    for (const auto& [thread, events] : events_of(o.trace))
      for (const Event& e : events) ++categories[e.category];
    return categories;
  };
  CHECK(count(train(**engine, StepRange{1, 5}, 3))["step"] == 2);
  auto interpreter = interp::make_interpreter();
  const auto phases = count(train(*interpreter, StepRange{0, 1}));
  CHECK(phases.at("step") == 1);
  CHECK(phases.at("phase") > 5);
  // A later profile of the same process is not disturbed by these.
  CHECK(count(train(**engine, StepRange{4, 5}))["step"] == 1);
}

TEST_CASE("profile: each simulated worker has a track, whose phases are its whole part of a step") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  const ProfiledRun with = train(**engine, StepRange{1, 3}, 100, 2);
  CHECK(with.hash == train(**engine, std::nullopt).hash);
  auto threads = events_of(with.trace);
  for (const char* worker : {"worker 0", "worker 1"}) {
    int64_t whole = 0, parts = 0;
    int leaves = 0;
    for (const Event& e : threads[worker]) {
      if (e.category == "step") whole += e.end - e.begin;
      if (e.category == "phase") parts += e.end - e.begin;
      leaves += e.category == "phase" && e.name == "leaf";
    }
    CHECK(whole > 0);
    CHECK(whole == parts);
    CHECK(leaves == (worker == std::string("worker 0") ? 2 : 4));  // three leaves a step, two steps
  }
}

TEST_CASE("profile: ranges of steps, and what is none") {
  CHECK(parse_profile("steps=10:13").value() == StepRange{10, 13});
  CHECK(parse_profile("steps=0:1").value() == StepRange{0, 1});
  for (const char* text :
       {"", "10:13", "steps=10", "steps=:3", "steps=1:", "steps=-1:3", "steps=a:b", "steps=1:2:3",
        "steps= 1:2", "steps=3:3", "steps=4:3", "steps=1:99999999999999999999"})
    CHECK_MESSAGE(!parse_profile(text).ok(), text);
  CHECK(parse_profile("steps=7:7").error().message().find("steps=7:8") != std::string::npos);
  CHECK(check_profile({2, 5}, 5).ok());
  CHECK_FALSE(check_profile({2, 6}, 5).ok());
}

}  // namespace
}  // namespace ostro::train
