// Runs over several components, with weights and batch sizes that change: the same hash however they are run,
// and the same beginning whatever comes later.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ostro/audit/verify.h"
#include "ostro/chain/chain.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro::train {
namespace {

struct Outcome {
  std::string hash;
  std::vector<chain::StepEntry> steps;
  std::vector<run::EvalReport> evals;
};

// Sessions of at most `session` steps each.
Outcome train(io::FileSystem& fs, runtime::Engine& engine, const TrainConfig& config, int64_t workers = 1,
              int64_t session = 100) {
  Outcome out;
  while (out.hash.empty()) {
    int64_t steps = 0;
    auto run = run::Run::open(config, {fs, engine, workers, [&] { return ++steps >= session; }, {}, {}});
    REQUIRE_MESSAGE(run.ok(), run.error().message());
    run::Watcher watcher;
    watcher.on_eval = [&](const run::EvalReport& r) { out.evals.push_back(r); };
    const auto outcome = (*run)->train(watcher);
    REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
    if (outcome->finished) out.hash = outcome->hash;
  }
  const auto chain = chain::read_chain(fs, run_directory(config) + "/" + chain::kChainFile);
  REQUIRE(chain.ok());
  for (const chain::ChainLink& link : chain->links)
    if (const auto* step = std::get_if<chain::StepEntry>(&link.entry)) out.steps.push_back(*step);
  return out;
}

Outcome train(runtime::Engine& engine, const Settings& more, int64_t workers = 1, int64_t session = 100) {
  io::MemoryFileSystem fs;
  write_mixed_files(fs);
  return train(fs, engine, mixed_config(more), workers, session);
}

TEST_CASE("a run of changing weights and batch sizes: any workers, any interruption, verified") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  io::MemoryFileSystem fs;
  write_mixed_files(fs);
  const TrainConfig config = mixed_config({});
  const Outcome whole = train(fs, **engine, config);
  REQUIRE(whole.steps.size() == 7);
  const std::vector<int64_t> sizes = {4, 4, 4, 10, 10, 2, 2};
  for (size_t i = 0; i < sizes.size(); ++i)
    CHECK(whole.steps[i].tokens == static_cast<double>(sizes[i] * 16));
  CHECK(whole.steps.back().loss < whole.steps.front().loss);
  REQUIRE(!whole.evals.empty());
  REQUIRE(whole.evals.back().parts.size() == 2);
  CHECK(whole.evals.back().parts[0].component == "code");
  CHECK(whole.evals.back().bits_per_byte.has_value());

  const auto verified = audit::verify_run(fs, **engine, run_directory(config), {}, models::builtin_models());
  REQUIRE_MESSAGE(verified.ok(), verified.error().message());
  CHECK(verified->equal);
  CHECK(verified->last_step == 7);

  CHECK(train(**engine, {}, 3).hash == whole.hash);
  CHECK(train(**engine, {}, 1, 2).hash == whole.hash);
  CHECK(train(**engine, {{"trainer.seed", "1"}}).hash != whole.hash);
}

TEST_CASE("what changes from a step on leaves every step before it as it was") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  const Outcome whole = train(**engine, {});
  const auto equal_steps = [&](const Settings& more) {
    const Outcome other = train(**engine, more);
    size_t equal = 0;
    while (equal < 7 && other.steps[equal].state == whole.steps[equal].state &&
           other.steps[equal].batch == whole.steps[equal].batch)
      ++equal;
    return equal;
  };
  CHECK(equal_steps({{"data.train_weights", "{web: 0.75, code: 0.25}"}}) == 4);
  CHECK(equal_steps({{"data.train_weights",
                      "[[0, {web: 0.75, code: 0.25}], [4, {web: 0.25, code: 0.75}], [6, "
                      "{web: 1}]]"}}) == 6);
  CHECK(equal_steps({{"trainer.train_batch_size", "[[0, 4], [3, 10], [5, 6]]"}}) == 5);
  CHECK(equal_steps({{"trainer.train_batch_size", "4"}}) == 3);
  CHECK(equal_steps({{"data.mixture_block_size", "4"}}) == 0);
}

TEST_CASE("a run longer than its data allows is refused, and says how long it may be") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  io::MemoryFileSystem fs;
  write_mixed_files(fs);
  const auto most_steps = [&](const char* strategy) -> int64_t {
    const auto open = [&](int64_t steps) {
      return run::Run::open(mixed_config({{"data.stop_strategy", strategy},
                                          {"trainer.id", fmt::format("{}{}", strategy, steps)},
                                          {"trainer.num_train_steps", fmt::format("{}", steps)}}),
                            {fs, **engine});
    };
    const auto refused = open(4000);
    if (refused.ok()) return -1;
    const std::string message = refused.error().message();
    const size_t at = message.find("use at most ");
    REQUIRE_MESSAGE(at != std::string::npos, message);
    const int64_t most = std::stoll(message.substr(at + 12));
    CHECK(open(most).ok());
    CHECK(!open(most + 1).ok());
    return most;
  };
  CHECK(most_steps("restart") == -1);
  const int64_t first = most_steps("first_exhausted"), all = most_steps("all_exhausted");
  CHECK(first > 7);
  CHECK(all > first);
}

// A row of ids of which the first `idle` do not count.
void write_ids(io::FileSystem& fs, const char* path, int count, int idle) {
  std::string ids, weights;
  for (int i = 0; i < count; ++i) {
    ids += fmt::format("{}{}", i == 0 ? "" : ", ", 1 + i * i % 200);
    weights += fmt::format("{}{}", i == 0 ? "" : ", ", i < idle ? 0 : 1);
  }
  auto file = fs.create(path);
  REQUIRE(file.ok());
  check_ok(
      (*file)->append(fmt::format(R"({{"input_ids": [{}], "loss_weights": [{}]}})", ids, weights) + "\n"));
  check_ok((*file)->close());
}

TEST_CASE("held-out text without a token that counts is left out of evaluations, and ends no run") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  const std::string ids =
      "ids: {train_urls: [ids.jsonl], validation_urls: [late.jsonl], format: {type: prebuilt, "
      "loss_weights_key: loss_weights}}";
  const auto evals = [&](const std::string& components, const std::string& weights) {
    io::MemoryFileSystem fs;
    write_mixed_files(fs);
    write_ids(fs, "ids.jsonl", 400, 0);
    write_ids(fs, "late.jsonl", 64, 48);  // the batch that is evaluated ends before what counts
    return train(fs, **engine,
                 mixed_config({{"data.components", components},
                               {"data.train_weights", weights},
                               {"trainer.max_eval_batches", "1"},
                               {"trainer.steps_per_eval", "3"}}))
        .evals;
  };
  const auto mixed =
      evals("{web: {train_urls: [web], validation_fraction: 0.2}, " + ids + "}", "{web: 1, ids: 0}");
  REQUIRE(mixed.size() == 3);  // at steps 3, 6 and 7
  for (const run::EvalReport& report : mixed) {
    REQUIRE(report.parts.size() == 1);
    CHECK(report.parts[0].component == "web");
    CHECK(report.loss == report.parts[0].loss);
  }
  CHECK(evals("{" + ids + "}", "{ids: 1}").empty());
}

}  // namespace
}  // namespace ostro::train
