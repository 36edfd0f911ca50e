// Two runs compared by their chains: the first step that differs, in what, and the sentences that say why.
#include "ostro/audit/record/run_diff.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace ostro::audit {
namespace {

const std::string kHash(64, 'a'), kOther(64, 'b');

// A chain without hashes that anybody checks: they play no part here.
struct MadeRun {
  chain::Chain chain;

  explicit MadeRun(const std::string& config, int64_t steps = 4, int64_t from = 0) {
    chain::GenesisEntry genesis;
    genesis.numerics_version = "1";
    genesis.program_hash = genesis.data_hash = genesis.tokenizer_hash = kHash;
    genesis.config = config;
    if (from > 0) genesis.fork = chain::Fork{kHash, from}, genesis.initial = kHash;
    chain.links.push_back({genesis, kHash});
    for (int64_t step = from + 1; step <= steps; ++step)
      chain.links.push_back({chain::StepEntry{step, 2.0, 8, kHash, kHash, kHash}, kHash});
  }
  chain::GenesisEntry& genesis() { return std::get<chain::GenesisEntry>(chain.links[0].entry); }
  chain::StepEntry& step(int64_t number) {
    for (chain::ChainLink& link : chain.links)
      if (auto* step = std::get_if<chain::StepEntry>(&link.entry); step != nullptr && step->step == number)
        return *step;
    FAIL("no such step");
    return std::get<chain::StepEntry>(chain.links[1].entry);
  }
};

RunDifference compared(const MadeRun& one, const MadeRun& two) {
  return compare_runs({"one", one.chain}, {"two", two.chain});
}

constexpr const char* kConfig = R"({"data":{"seed":1},"optimizer":{"learning_rate":"0x1p-3"}})";

TEST_CASE("equal runs, and runs without a step in common") {
  const MadeRun one(kConfig), longer(kConfig, 6), fork(kConfig, 6, 4);
  CHECK(answer_text(compared(one, longer)) == "Equal: all 4 steps that both have, 1 to 4.");
  CHECK(compared(one, longer).why.empty());
  CHECK(answer_text(compared(one, fork)) == "The two have no step in common.");
  CHECK(answer_text(compared(longer, fork)) == "Equal: all 2 steps that both have, 5 to 6.");
}

TEST_CASE("another option explains another state, and the data another batch") {
  const MadeRun one(kConfig);
  MadeRun other(R"({"data":{"seed":1},"optimizer":{"learning_rate":"0x1p-2"}})");
  other.step(2).state = kOther;
  other.step(3).loss = 1.5;
  RunDifference found = compared(one, other);
  CHECK(answer_text(found) ==
        "The first step that differs is step 2: the state behind it. Steps 1 to 1 are equal.");
  REQUIRE(found.why.size() == 2);
  CHECK(found.why[0].find("what the optimizer does differs") != std::string::npos);
  CHECK(found.why[1] == "Options differ: optimizer.learning_rate (0.125, 0.25).");
  CHECK(found.options == std::vector<NamedPair>{{"optimizer.learning_rate", "0.125", "0.25"}});

  MadeRun moved(R"({"data":{"seed":2},"optimizer":{"learning_rate":"0x1p-3"}})");
  moved.genesis().data_hash = kOther;
  moved.step(1).batch = kOther;
  found = compared(one, moved);
  CHECK(found.fields == std::vector<std::string>{"batch"});
  CHECK(found.why == std::vector<std::string>{"The two have other data.",
                                              "Options of data or order differ: data.seed (1, 2)."});
}

TEST_CASE("amends before the step are named, those behind it are not; what nothing explains is said") {
  const MadeRun one(kConfig);
  MadeRun amended(kConfig);
  amended.step(4).loss = 7;
  CHECK(compared(one, amended).why.back().find("Nothing that the chains say") == std::string::npos);
  const chain::ChainLink amend{chain::AmendEntry{2, R"({"optimizer.decay":["1","2"]})"}, kHash};
  amended.chain.links.insert(amended.chain.links.begin() + 3, amend);
  const RunDifference found = compared(one, amended);
  CHECK(found.step == 4);
  CHECK(found.why.back() == "two was amended behind step 2: optimizer.decay.");
  MadeRun later(kConfig);
  later.step(2).batch = kOther;
  later.chain.links.insert(later.chain.links.begin() + 3, amend);
  CHECK(compared(one, later).why ==
        std::vector<std::string>{"Nothing that the chains say explains it: one of the "
                                 "two was computed wrongly, or changed."});
}

TEST_CASE("names from outside end no line, and the JSON has both sides") {
  const MadeRun one(kConfig);
  MadeRun two(kConfig);
  two.step(1).state = kOther;
  const ComparedRun a{"a\n\x1b[2J", one.chain}, b{"b", two.chain};
  const RunDifference found = compare_runs(a, b);
  CHECK(run_difference_text(found, a, b).find('\x1b') == std::string::npos);
  const auto json = nlohmann::json::parse(run_difference_json(found, a, b));
  CHECK(json["first_different_step"] == 1);
  CHECK(json["step"]["state"][1] == kOther);
  CHECK(nlohmann::json::parse(run_diff_rules_json())["compared"][0][0] == "batch");
}

}  // namespace
}  // namespace ostro::audit
