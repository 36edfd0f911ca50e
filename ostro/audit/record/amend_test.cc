// Runs that go on with another config: the same chain however they are run and wherever they are killed,
// verified across amends; which options cannot be amended.
#include "ostro/audit/record/amend.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/audit/record/amended_run_for_test.h"
#include "ostro/audit/record/recorded_run.h"
#include "ostro/batches/order/mixture.h"
#include "ostro/chain/canonical.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/fingerprints.h"

namespace ostro::audit {
namespace {

using namespace amend_for_test;

using Json = nlohmann::json;

TEST_CASE("an amended run: any workers and interruption, verified; batches before it stay, cursors go on") {
  const auto engine = plain_engine();
  const auto fs = begun(*engine);
  const std::vector<chain::StepEntry> before = steps_of(chain_of(*fs));
  const std::string whole = must_go(*fs, *engine, train::mixed_config(kAmended), true).hash;
  const chain::Chain chain = chain_of(*fs);
  const std::vector<chain::StepEntry> steps = steps_of(chain);
  REQUIRE(steps.size() == 8);
  CHECK(std::equal(before.begin(), before.end(), steps.begin()));
  const std::vector<int64_t> sizes = {4, 4, 4, 10, 6, 2, 2, 2};
  for (size_t i = 0; i < sizes.size(); ++i) CHECK(steps[i].tokens == sizes[i] * 16);
  for (const int64_t from : {0, 2, 4, 6}) CHECK(verified(*fs, *engine, from) == "equal");
  CHECK(verified(*fs, *engine, 0, 3) == "equal");

  // What the run stored says it all: the batch of every step, and each component without gaps or repeats.
  const auto stored = train::parse_train_config(*fs->read_file("runs/run/config.yaml"), "config.yaml",
                                                models::builtin_models());
  REQUIRE(stored.ok());
  const auto data = train::open_data(*fs, *stored);
  REQUIRE(data.ok());
  const auto loader = train::make_loader(*stored, data->stores);
  REQUIRE(loader.ok());
  for (const chain::StepEntry& step : steps)
    CHECK(batches::batch_fingerprint(*loader->batch(step.step - 1)) == step.batch);
  const auto mixture = batches::Mixture::create(stored->data, loader->schedule(), numerics::key_from_seed(0));
  REQUIRE(mixture.ok());
  std::vector<int64_t> next(2, 0);
  for (int64_t example = 0; example < loader->schedule().first_example(8); ++example) {
    const auto pick = (*mixture)(example);
    CHECK(pick.number == next[pick.component]++);
  }

  const auto other = begun(*engine);
  CHECK(must_go(*other, *engine, train::mixed_config(kAmended), true, 1000, 3).hash == whole);
  const auto slow = begun(*engine);
  for (int64_t until = 5; until < 8; ++until)
    must_go(*slow, *engine, train::mixed_config(kAmended), true, until);
  CHECK(must_go(*slow, *engine, train::mixed_config(kAmended), false).hash == whole);
  train::Settings another = kAmended;
  another.emplace_back("optimizer.epsilon", "1e-6");
  const auto different = begun(*engine);
  CHECK(must_go(*different, *engine, train::mixed_config(another), true).hash != whole);
}

TEST_CASE(
    "an amended run goes on with what it was amended by, or with its own config.yaml, and nothing else") {
  const auto engine = plain_engine();
  const auto fs = begun(*engine);
  const auto refused = [&](const train::Settings& settings, bool amend) {
    const std::string chain = *fs->read_file("runs/run/chain.jsonl");
    const auto outcome = go(*fs, *engine, train::mixed_config(settings), amend, 5);
    CHECK(*fs->read_file("runs/run/chain.jsonl") == chain);
    return outcome.ok() ? "" : outcome.error().message();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  has(refused(kAmended, false),
      "runs/run holds a run with other options: data.train_weights is [[0,{\"code\":");
  has(refused(kAmended, false),
      "to go on with them after step 4, add --amend; give this run another trainer.id");
  has(refused({{"trainer.num_train_steps", "4"}}, true),
      "trainer.num_train_steps: 4 leaves nothing to do after step 4");
  has(refused({{"trainer.train_batch_size", "[[0, 4], [5, 10], [6, 12]]"}, {"numerics.leaf_examples", "4"}},
              true),
      "trainer.train_batch_size: 10 is not a multiple of numerics.leaf_examples, which is 4; use "
      "leaf_examples 2");
  must_go(*fs, *engine, train::mixed_config(kAmended), true, 5);
  has(refused(kQuiet, false), "other options since it was amended after step 4: ");
  auto stored = train::parse_train_config(*fs->read_file("runs/run/config.yaml"), "config.yaml",
                                          models::builtin_models());
  REQUIRE(stored.ok());
  must_go(*fs, *engine, *stored, false, 6);
  must_go(*fs, *engine, train::mixed_config(kAmended), false, 7);
  // Back again is an amend, too; twice at one step as well.
  train::Settings back = kQuiet;
  back.emplace_back("trainer.num_train_steps", "9");
  must_go(*fs, *engine, train::mixed_config(back), true, 8);
  has(refused(kAmended, false), "since it was amended after step 7");
  back.emplace_back("optimizer.learning_rate", "0.001");
  must_go(*fs, *engine, train::mixed_config(back), true);
  CHECK(verified(*fs, *engine) == "equal");
  CHECK(periods_of(train::mixed_config(kQuiet), chain_of(*fs), "chain")->size() == 4);

  io::MemoryFileSystem empty;
  train::write_mixed_files(empty);
  const auto none = go(empty, *engine, train::mixed_config(kQuiet), true);
  REQUIRE(!none.ok());
  has(none.error().message(), "runs/run holds no run to amend");
}

train::Settings sized(const std::string& batch, const std::string& leaf) {
  train::Settings settings = kQuiet;
  settings.insert(settings.end(), {{"trainer.train_batch_size", batch}, {"numerics.leaf_examples", leaf}});
  return settings;
}

TEST_CASE("amended batch sizes: the run keeps its leaves when none are given and they fit, else it says so") {
  const train::TrainConfig eight = train::mixed_config(sized("8", "null"));
  REQUIRE(eight.numerics.leaf_examples == 8);
  const auto leaf = [&](const std::string& batch, const std::string& given) {
    const auto config = continue_with(eight, train::mixed_config(sized(batch, given)), kAmendedAt);
    REQUIRE_MESSAGE(config.ok(), config.error().message());
    return *config->numerics.leaf_examples;
  };
  CHECK(leaf("16", "null") == 8);
  CHECK(leaf("[[0, 2], [4, 24]]", "null") == 8);
  CHECK(leaf("4", "null") == 4);
  CHECK(leaf("[[0, 6], [6, 9]]", "null") == 3);
  CHECK(leaf("16", "16") == 16);
  CHECK(leaf("[[0, 8], [4, 12]]", "6") == 6);
  const auto late = continue_with(eight, train::mixed_config(sized("[[0, 8], [5, 12]]", "12")), kAmendedAt);
  REQUIRE(!late.ok());
  CHECK(late.error().message().starts_with(
      "trainer.train_batch_size: 8 is not a multiple of numerics.leaf_examples, which is 12"));

  const auto engine = plain_engine();
  for (const char* given : {"null", "16"}) {
    io::MemoryFileSystem fs;
    train::write_mixed_files(fs);
    must_go(fs, *engine, eight, false, kAmendedAt);
    const train::TrainConfig sixteen = train::mixed_config(sized("16", given));
    must_go(fs, *engine, sixteen, true, 5);
    const chain::Chain chain = chain_of(fs);
    for (const chain::ChainLink& link : chain.links)
      if (const auto* amend = std::get_if<chain::AmendEntry>(&link.entry))
        CHECK(Json::parse(amend->difference).contains("numerics.leaf_examples") ==
              (given != std::string("null")));
    // Both files go on, also where the batches before do not consist of such leaves.
    must_go(fs, *engine, sixteen, false, 6);
    auto stored = train::parse_train_config(*fs.read_file("runs/run/config.yaml"), "config.yaml",
                                            models::builtin_models());
    REQUIRE_MESSAGE(stored.ok(), stored.error().message());
    must_go(fs, *engine, *stored, false);
    CHECK(verified(fs, *engine) == "equal");
    const auto data = train::open_data(fs, *stored);
    REQUIRE(data.ok());
    const auto loader = train::make_loader(*stored, data->stores);
    for (const chain::StepEntry& step : steps_of(chain_of(fs)))
      CHECK(batches::batch_fingerprint(*loader->batch(step.step - 1)) == step.batch);
    // A run of its own cannot begin like that.
    stored->trainer.id = "anew";
    CHECK(go(fs, *engine, *stored, false).ok() == (given == std::string("null")));
  }
}

TEST_CASE("verify asks no run for a length that a later config allows") {
  const auto engine = plain_engine();
  io::MemoryFileSystem fs;
  train::write_mixed_files(fs);
  train::Settings settings = kQuiet;
  settings.emplace_back("trainer.num_train_steps", "4000");
  must_go(fs, *engine, train::mixed_config(settings), false, kAmendedAt);
  settings.back().value = "6";
  settings.emplace_back("data.stop_strategy", "first_exhausted");
  must_go(fs, *engine, train::mixed_config(settings), true, 5);
  // The process that finished it was stopped, so nothing but config.yaml knows the strategy.
  CHECK(verified(fs, *engine) == "equal");
}

TEST_CASE(
    "a run that dies right after its amend: verify counts the entry; a refused one leaves all as it is") {
  const auto engine = plain_engine();
  const auto fs = begun(*engine);
  const std::string leftover = "runs/run/checkpoints/step-00000009.tmp";
  check_ok(fs->make_dirs(leftover));
  CHECK(!go(*fs, *engine, train::mixed_config(kAmended), false).ok());
  CHECK(*fs->exists(leftover));
  REQUIRE(run::Run::open(train::mixed_config(kAmended), {*fs, *engine}, true).ok());
  CHECK(!*fs->exists(leftover));
  const auto report = verify_run(*fs, *engine, "runs/run", {}, models::builtin_models());
  REQUIRE(report.ok());
  CHECK(report->equal);
  CHECK(report->entries == static_cast<int64_t>(chain_of(*fs).links.size()) - 1);
}

TEST_CASE("an amend does not turn a run to products of integers, or away from them") {
  train::TrainConfig floats = train::mixed_config(kQuiet), integers = floats;
  integers.trainer.mp = "p=f32,c=int8";
  train::TrainConfig attention = integers;
  attention.trainer.mp = "p=f32,c=int8,a=int8";
  for (const Status& refused : {check_amend(floats, integers, 2), check_amend(integers, floats, 2),
                                check_amend(integers, attention, 2), check_amend(attention, integers, 2)}) {
    REQUIRE(!refused.ok());
    CHECK_MESSAGE(refused.error().message().find("no amend can change: trainer.mp is") != std::string::npos,
                  refused.error().message());
  }
}

TEST_CASE("slow: a power cut at any moment of an amend: the run verifies, and goes on to the same hash") {
  const auto engine = plain_engine();
  const auto undisturbed = begun(*engine);
  const std::string whole = must_go(*undisturbed, *engine, train::mixed_config(kAmended), true, 5).hash;
  int cuts = 0, amended = 0;
  for (int64_t at = 0;; ++at) {
    const auto memory = begun(*engine);
    io::FaultyFileSystem faulty(*memory);
    faulty.inject(io::Fault::kCrash, at);
    (void)run::Run::open(train::mixed_config(kAmended), {faulty, *engine}, true).ok();
    if (!faulty.triggered()) break;
    memory->crash(static_cast<uint64_t>(at % 3));
    ++cuts;
    CAPTURE(at);
    CHECK(verified(*memory, *engine) == "equal");
    const auto periods = periods_of(train::mixed_config(kQuiet), chain_of(*memory), "chain");
    const bool is_amended = periods->size() > 1;
    amended += is_amended;
    const auto recorded = open_recorded(*memory, "runs/run", models::builtin_models(), false);
    REQUIRE_MESSAGE(recorded.ok(), recorded.error().message());
    CHECK(train::canonical_text(recorded->config) == periods->back().config);
    CHECK(must_go(*memory, *engine, train::mixed_config(kAmended), !is_amended, 5).hash == whole);
    CHECK(*memory->read_file("runs/run/config.yaml") == *undisturbed->read_file("runs/run/config.yaml"));
    CHECK(!*memory->exists("runs/run/config.amended.yaml"));
  }
  CHECK(cuts > 10);
  CHECK(amended > 2);
  CHECK(amended < cuts);
}

TEST_CASE("slow: every option can be amended or says why it cannot") {
  const auto engine = plain_engine();
  train::Settings base = train::kMixedRun;
  base.insert(base.end(), kQuiet.begin(), kQuiet.end());
  base.emplace_back("trainer.train_batch_size", "2");
  base.emplace_back("trainer.num_train_steps", "4");
  base.emplace_back("optimizer.warmup", "0");
  // Other values that fit this base better than the declared ones.
  const std::map<std::string, std::string> values = {{"trainer.train_batch_size", "4"},
                                                     {"numerics.leaf_examples", "1"},
                                                     {"data.components", "{web: {train_urls: [web]}}"},
                                                     {"data.train_weights", "{web: 0.5, code: 0.5}"},
                                                     {"data.shuffle", "true"},
                                                     {"objective.type", "next_token"},
                                                     {"model.num_kv_heads", "2"},
                                                     {"numerics.leaves", "{mlp: 2}"},
                                                     {"numerics.cells", "{embed: 2}"},
                                                     {"optimizer.max_grad_norm", "0.01"},
                                                     {"trainer.checkpointer.keep", "[{every: 1}]"}};
  std::map<std::string, std::unique_ptr<io::MemoryFileSystem>> runs;
  int refused = 0, amended = 0;
  std::set<std::string> seen;
  for (const config::OptionInfo& option : config::list_options(train::TrainConfig())) {
    if (config::is_inside_element(option.path) || option.by_content ||
        option.effect > config::Effect::kSchedule)
      continue;
    const auto value = values.find(option.path);
    const config::Override change{option.path, value != values.end() ? value->second : option.other_value};
    if (change.value.empty() || !seen.insert(option.path).second) continue;
    CAPTURE(option.path);
    train::Settings from = base;
    if (option.path == "data.text_key" || option.path == "data.validation_fraction")
      from.insert(from.end(),
                  {{"data.components", "{}"}, {"data.train_weights", "{}"}, {"data.train_urls", "[web]"}});
    if (option.path == "optimizer.warmup_from") from.emplace_back("optimizer.warmup", "2");
    if (option.path == "data.without_as") from.emplace_back("data.without", "[\"web/1.txt:1\"]");
    for (const auto& [path, text] : option.selects) from.push_back({path, text});
    if (option.path.starts_with("model."))
      for (const auto& [path, text] : option.beside) from.push_back({path, text});
    if (!option.fixed.empty() && !option.path.starts_with("data.shuffle"))
      for (const auto& [path, text] : option.beside)
        if (path.find("budget") != std::string::npos) from.push_back({path, text});
    if (option.path.starts_with("objective."))
      from.insert(from.end(), train::kPairRun.begin(), train::kPairRun.end());
    train::Settings to = from;
    to.push_back(change);
    if (option.path == "objective.type") to.push_back(train::kMixedRun[1]);  // the texts, which go with it
    if (option.path == "data.components") to.emplace_back("data.train_weights", "{web: 1}");
    io::MemoryFileSystem fs;
    train::write_mixed_files(fs);
    const auto there = train::load_train_config("", from), here = train::load_train_config("", to);
    REQUIRE_MESSAGE(there.ok(), there.error().message());
    REQUIRE_MESSAGE(here.ok(), here.error().message());
    if (train::canonical_text(*there) == train::canonical_text(*here)) {
      CHECK_MESSAGE(false, "the other value changes nothing");
      continue;
    }
    must_go(fs, *engine, *there, false, 2);
    const auto outcome = go(fs, *engine, *here, true, 3);
    if (!option.fixed.empty()) {
      REQUIRE(!outcome.ok());
      CHECK_MESSAGE(outcome.error().message().find(option.path + " is ") != std::string::npos,
                    outcome.error().message());
      CHECK_MESSAGE(outcome.error().message().find(option.fixed) != std::string::npos,
                    outcome.error().message());
      ++refused;
    } else {
      REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
      CHECK(verified(fs, *engine) == "equal");
      ++amended;
    }
  }
  CHECK(refused >= 15);
  CHECK(amended >= 18);
}

}  // namespace
}  // namespace ostro::audit
