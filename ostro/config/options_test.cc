#include "ostro/config/options.h"

#include <doctest/doctest.h>

#include <map>

#include "ostro/base/log.h"
#include "ostro/config/config.h"

namespace ostro::config {
namespace {

struct RopeDefault {
  static constexpr const char* kType = "default";
  double theta = 10000;
  void visit_options(OptionTable& t) { t.add(&theta, "theta", Effect::kBits, "", "base"); }
};
struct RopeLlama3 {
  static constexpr const char* kType = "llama3";
  double theta = 500000, factor = 8;
  void visit_options(OptionTable& t) {
    t.add(&theta, "theta", Effect::kBits, "", "base");
    t.add(&factor, "factor", Effect::kBits, "", "scale");
  }
};
struct Every {
  int64_t every = 1;
  void visit_options(OptionTable& t) { t.add(&every, "every", Effect::kOutput, "steps", "one in so many"); }
};
struct Trainer {
  std::string id = "run";
  int64_t seed = 0;
  double rate = 6e-4;
  std::optional<int64_t> limit;
  Duration interval{900};
  std::vector<Every> keep = {{1000}};
  std::vector<std::string> urls;
  IntMap cells = {{"embed", 16}, {"a", 2}};
  Alternatives<bool, int64_t> shuffle{true};
  Alternatives<bool, std::string> remat{false};
  std::variant<RopeDefault, RopeLlama3> rope;
  void visit_options(OptionTable& t) {
    t.add(&id, "id", Effect::kOutput, "", "run name").other("other");
    t.add(&seed, "seed", Effect::kBits, "", "seed");
    t.add(&rate, "rate", Effect::kBits, "", "rate");
    t.add(&limit, "limit", Effect::kOutput, "batches", "limit").other("3");
    t.add(&interval, "interval", Effect::kOutput, "", "time").other("1m");
    t.add(&keep, "keep", Effect::kSchedule, "", "keep").other("[{every: 2}]");
    t.add(&urls, "urls", Effect::kBits, "", "files").other("[a]").by_content();
    t.add(&cells, "cells", Effect::kBits, "", "cells").other("{}");
    t.add(&shuffle, "shuffle", Effect::kBits, "", "shuffle").other("7");
    t.add(&remat, "remat", Effect::kPlan, "", "remat").other("nothing");
    t.section(&rope, "rope", "position code");
    t.refuse("per_device", "use leaves");
  }
};
struct Top {
  Trainer trainer;
  void visit_options(OptionTable& t) { t.section(&trainer, "trainer", "the trainer"); }
};

Result<Top> read(const std::string& yaml, std::vector<Override> overrides = {}) {
  ASSIGN_OR_RETURN(Node tree, parse_yaml(yaml, "c.yaml"));
  for (const Override& override : overrides) RETURN_IF_ERROR(apply_override(override, &tree));
  Top top;
  RETURN_IF_ERROR(read_value(tree, "", &top));
  return top;
}

std::string error_of(const std::string& yaml, std::vector<Override> overrides = {}) {
  const Result<Top> top = read(yaml, std::move(overrides));
  return top.ok() ? "" : top.error().message();
}

TEST_CASE("values of every type are read") {
  const Result<Top> top = read(R"(
trainer:
  id: 007
  seed: -3
  rate: 1e-5
  limit: 12
  interval: 1h30m
  keep: [{every: 5}, {every: 6}]
  urls: ["a/**/*.h", b]
  cells: {z: 1, b: 2}
  shuffle: 4096
  remat: qkv
  rope: {type: llama3, factor: 4}
)");
  REQUIRE(top.ok());
  const Trainer& t = top->trainer;
  CHECK(t.id == "007");
  CHECK(t.seed == -3);
  CHECK(t.rate == 1e-5);
  CHECK(t.limit == 12);
  CHECK(t.interval.seconds == 5400);
  CHECK(t.keep.size() == 2);
  CHECK(t.keep[1].every == 6);
  CHECK(t.urls == std::vector<std::string>{"a/**/*.h", "b"});
  CHECK(t.cells == IntMap{{"z", 1}, {"b", 2}});
  CHECK(std::get<int64_t>(t.shuffle.value) == 4096);
  CHECK(std::get<std::string>(t.remat.value) == "qkv");
  REQUIRE(std::holds_alternative<RopeLlama3>(t.rope));
  CHECK(std::get<RopeLlama3>(t.rope).factor == 4);
  CHECK(std::get<RopeLlama3>(t.rope).theta == 500000);
}

TEST_CASE("errors name place, key, value and what was expected") {
  CHECK(error_of("trainer:\n  sed: 1\n") ==
        "c.yaml:2: unknown key \"trainer.sed\"; the nearest known key is \"trainer.seed\"");
  CHECK(error_of("trianer: {}\n") ==
        "c.yaml:1: unknown key \"trianer\"; the nearest known key is \"trainer\"");
  CHECK(error_of("trainer:\n  seed: abc\n") == "c.yaml:2: trainer.seed: expected an integer, got \"abc\"");
  CHECK(error_of("trainer:\n  seed: 1.5\n") == "c.yaml:2: trainer.seed: expected an integer, got \"1.5\"");
  CHECK(error_of("trainer:\n  seed:\n") == "c.yaml:2: trainer.seed: expected an integer, got null");
  CHECK(error_of("trainer: {seed: [1]}") == "c.yaml:1: trainer.seed: expected an integer, got a list");
  CHECK(error_of("trainer: {seed: 99999999999999999999}") ==
        "c.yaml:1: trainer.seed: expected an integer of at most 64 bits, got \"99999999999999999999\"");
  CHECK(error_of("trainer: {seed: \"1\"}") == "c.yaml:1: trainer.seed: expected an integer, got \"1\"");
  CHECK(error_of("trainer: {rate: fast}") == "c.yaml:1: trainer.rate: expected a number, got \"fast\"");
  CHECK(error_of("trainer: {rate: 1e999}") ==
        "c.yaml:1: trainer.rate: expected a finite number that a double can hold, got \"1e999\"");
  CHECK(error_of("trainer: {shuffle: maybe}") ==
        "c.yaml:1: trainer.shuffle: expected true or false or integer, got \"maybe\"");
  CHECK(error_of("trainer: {interval: 15}") ==
        "c.yaml:1: trainer.interval: expected a duration like 90s, 15m or 1h30m, got \"15\"");
  CHECK(error_of("trainer:\n  keep:\n    - {every: 1}\n    - {evry: 1}\n") ==
        "c.yaml:4: unknown key \"trainer.keep[1].evry\"; the nearest known key is \"trainer.keep[1].every\"");
  CHECK(error_of("trainer: {cells: {embed: x}}") ==
        "c.yaml:1: trainer.cells.embed: expected an integer, got \"x\"");
  CHECK(error_of("trainer: 3") == "c.yaml:1: trainer: expected a section (key: value lines), got \"3\"");
  CHECK(error_of("trainer:\n  rope: {type: lama3}\n") ==
        "c.yaml:2: trainer.rope.type: unknown type \"lama3\"; known: default, llama3; the nearest is "
        "\"llama3\"");
  CHECK(error_of("trainer: {cells: [[a, 2], [b, 1], [a, 4]]}") ==
        "c.yaml:1: trainer.cells.a: is given twice, 2 and 4; keep one of them");
  CHECK(error_of("trainer: {per_device: 3}") == "c.yaml:1: trainer.per_device is refused: use leaves");
  CHECK(error_of("trainer:\n  seed: 1\n  id: a\n  seed: 2\n") ==
        "c.yaml:4: key \"trainer.seed\" was given before, at c.yaml:2");
  CHECK(error_of("trainer: [1").find("c.yaml:") == 0);
  CHECK(error_of("a: 1\n---\nb: 2\n") == "c.yaml: holds 2 YAML documents, expected one");
  CHECK(error_of("trainer: {id: \"\xff\"}") == "c.yaml: not valid UTF-8");
  CHECK(error_of("trainer: {id: !!binary abcd}").find("unknown tag") != std::string::npos);
  CHECK(error_of("trainer: {keep: &a [*a]}") != "");
}

TEST_CASE("all mistakes of a configuration are named at once, each with its place") {
  const std::string all = error_of(
      "trainer:\n  sed: 1\n  rate: fast\n  keep: [{evry: 1}, {every: x}]\n  rope: {type: lama3}\n  "
      "per_device: 2\n"
      "  id: a\n  cells: {a: b, c: 1, c: 2}\n  id: b\nmodle: {}\n",
      {{"trainer.shuffle", "maybe"}});
  const std::vector<std::string> errors = split_errors(all);
  CHECK(errors.size() == 11);
  for (const std::string error :
       {"c.yaml:2: unknown key \"trainer.sed\"", "c.yaml:3: trainer.rate: expected a number, got \"fast\"",
        "c.yaml:4: unknown key \"trainer.keep[0].evry\"",
        "c.yaml:4: trainer.keep[1].every: expected an integer", "c.yaml:5: trainer.rope.type: unknown type",
        "c.yaml:6: trainer.per_device is refused", "c.yaml:8: trainer.cells.a: expected an integer",
        "c.yaml:8: key \"trainer.cells.c\" was given before",
        "c.yaml:9: key \"trainer.id\" was given before, at c.yaml:7", "c.yaml:10: unknown key \"modle\"",
        "--trainer.shuffle: trainer.shuffle: expected"})
    CHECK_MESSAGE(("\nerror: " + all).find("\nerror: " + error) != std::string::npos, error, "\n", all);
}

TEST_CASE("what other trainers call an option is told, and what has no effect is taken with a note") {
  CHECK(error_of("trainer: {max_steps: 5}").find("it is called trainer.num_train_steps here") !=
        std::string::npos);
  CHECK(error_of("trainer: {bf16: true}").find("it is called trainer.mp: bfloat16 here") !=
        std::string::npos);
  CHECK(error_of("trainer: {ray: {address: x}}") ==
        "c.yaml:1: trainer.ray is refused: workers are started by ostro launch, which knows their number and "
        "places");
  // Of a name that stands elsewhere.
  CHECK(error_of("rate: 1").find("the option of this name is trainer.rate") != std::string::npos);
  // Nothing is near.
  CHECK(error_of("trainer: {zzzzzzzz: 1}").find("known here: id, seed, rate, limit") != std::string::npos);
  std::string said;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { said += line; });
  CHECK(read("trainer: {scan_layers: true, fp16: false, seed: 4}").ok());
  set_log_sink(before);
  CHECK(said ==
        "c.yaml:1: trainer.scan_layers has no effect here; layers are always a loop"
        "c.yaml:1: trainer.fp16 has no effect here; trainer.mp has f32 and bfloat16");
}

TEST_CASE("integers may have an exponent or underscores; one section may stand for a list of them") {
  const Result<Top> top =
      read("trainer: {seed: 1e3, limit: 1_000_000, rate: 1_0.5, keep: {every: 7}, id: 1_0}");
  REQUIRE(top.ok());
  CHECK(top->trainer.seed == 1000);
  CHECK(top->trainer.limit == 1000000);
  CHECK(top->trainer.rate == 10.5);
  CHECK(top->trainer.keep.size() == 1);
  CHECK(top->trainer.keep[0].every == 7);
  CHECK(top->trainer.id == "1_0");
  for (const char* bad : {"1.5e0", "1e-3", "1000.0", "1__0", "_1", "1_", "1e30"})
    CHECK_MESSAGE(!read(std::string("trainer: {seed: ") + bad + "}").ok(), bad);
}

TEST_CASE("overrides set values, choose types and name themselves in errors") {
  const Result<Top> top = read("trainer: {rope: {theta: 5}}", {{"trainer.seed", "4"},
                                                               {"trainer.seed", "5"},
                                                               {"trainer.id", "a: b #c"},
                                                               {"trainer.keep", "[{every: 9}]"},
                                                               {"trainer.rope.type", "llama3"}});
  REQUIRE(top.ok());
  CHECK(top->trainer.seed == 5);
  CHECK(top->trainer.id == "a: b #c");
  CHECK(top->trainer.keep[0].every == 9);
  CHECK(std::get<RopeLlama3>(top->trainer.rope).theta == 5);
  CHECK(error_of("", {{"trainer.sed", "4"}}) ==
        "--trainer.sed: unknown key \"trainer.sed\"; the nearest known key is \"trainer.seed\"");
  CHECK(error_of("", {{"trainer.seed", "x"}}) ==
        "--trainer.seed: trainer.seed: expected an integer, got \"x\"");
  CHECK(error_of("trainer: {seed: 1}", {{"trainer.seed.x", "1"}}) ==
        "--trainer.seed.x: \"trainer.seed\" is an integer in c.yaml:1, not a section");
  CHECK(error_of("", {{"trainer..x", "1"}}) == "--trainer..x: empty name in the path");
  CHECK(error_of("", {{"trainer.keep", "[1"}}).find("--trainer.keep") == 0);
}

TEST_CASE("the resolved YAML reads back to the same options") {
  Top top;
  for (const double rate : {0.1, 1.0 / 3, 6e-4, 1e300, 5e-324, -0.0, 123456789.0, 1e22}) {
    top.trainer.rate = rate;
    for (const std::string id : {"plain", "", "true", "12", "1e-5", "null", "a: b", "tab\t\"q\"\\ \x01", "-x",
                                 "yes", "näher", "#x", " lead"}) {
      top.trainer.id = id;
      const std::string text = resolved_yaml(top);
      const Result<Top> back = read(text);
      REQUIRE_MESSAGE(back.ok(), text);
      CHECK(resolved_yaml(*back) == text);
      CHECK(back->trainer.id == id);
      CHECK(back->trainer.rate == rate);
    }
  }
}

TEST_CASE("the canonical config holds bits and schedule, sorted, without places") {
  CHECK(canonical_config(Top{}) ==
        R"({"trainer":{"cells":[["embed",16],["a",2]],"keep":[{"every":1000}],"rate":0.0006,)"
        R"("rope":{"theta":10000.0,"type":"default"},"seed":0,"shuffle":true}})");
}

TEST_CASE("every option can be listed, and changed to another value that sticks") {
  std::map<std::string, OptionInfo> all;
  for (const OptionInfo& info : list_options(Top{})) {
    if (info.path.find("[]") != std::string::npos) continue;
    std::vector<Override> before;
    for (const auto& [path, value] : info.selects) before.push_back({path, value});
    std::vector<Override> after = before;
    REQUIRE_MESSAGE(info.other_value != "", info.path);
    after.push_back({info.path, info.other_value});
    const Result<Top> a = read("", before), b = read("", after);
    REQUIRE(a.ok());
    REQUIRE_MESSAGE(b.ok(), info.path);
    CHECK_MESSAGE(resolved_yaml(*a) != resolved_yaml(*b), info.path);
    all.emplace(info.path + (info.selects.empty() ? "" : "/" + info.selects[0].second), info);
  }
  CHECK(all.count("trainer.rope.theta/default") == 1);
  CHECK(all.count("trainer.rope.factor/llama3") == 1);
  CHECK(all.at("trainer.rope.type").other_value == "llama3");
  CHECK(all.at("trainer.seed").effect == Effect::kBits);
  CHECK(all.at("trainer.cells").default_value == "{embed: 16, a: 2}");
}

TEST_CASE("help and documentation name every option") {
  const std::vector<OptionInfo> all = list_options(Top{});
  const std::string help = options_help(all), markdown = options_markdown(all);
  for (const OptionInfo& info : all) {
    CHECK(help.find("--" + info.path) != std::string::npos);
    CHECK(markdown.find("`" + info.path + "`") != std::string::npos);
  }
}

TEST_CASE("durations") {
  CHECK(parse_duration("90s").value().seconds == 90);
  CHECK(parse_duration("1d2h").value().seconds == 93600);
  CHECK(format_duration({90}) == "1m30s");
  CHECK(format_duration({0}) == "0s");
  for (const char* bad : {"", "15", "m", "-1m", "1x", "1 m", "99999999999999s"})
    CHECK(!parse_duration(bad).ok());
}

}  // namespace
}  // namespace ostro::config
