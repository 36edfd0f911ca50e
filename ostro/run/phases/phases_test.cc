// Runs of several phases: the chain of amends by hand, wherever they are stopped, verified; what the record
// says of each phase.
#include "ostro/run/phases/phases.h"

#include <doctest/doctest.h>

#include "ostro/audit/record/amend.h"
#include "ostro/audit/verify.h"
#include "ostro/chain/chain.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/json/file_header.h"
#include "ostro/run/phases/period_facts.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro::run {
namespace {

struct PhasedWorld {
  io::MemoryFileSystem fs;
  std::unique_ptr<runtime::Engine> engine;
  std::vector<std::pair<size_t, bool>> sessions;  // phase, and whether it was an amend

  PhasedWorld() {
    auto made = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
    REQUIRE(made.ok());
    engine = std::move(*made);
    train::write_mixed_files(fs);
  }

  // A session of one config that stops after `until` steps of the run.
  Result<RunOutcome> session(const train::TrainConfig& config, bool amend, int64_t until, int64_t workers) {
    const Run* running = nullptr;
    ASSIGN_OR_RETURN(
        const auto run,
        Run::open(config, {fs, *engine, workers, [&] { return running->step() >= until; }, {}, {}}, amend));
    running = run.get();
    return run->train({});
  }

  Result<RunOutcome> go(const std::vector<train::TrainConfig>& configs, int64_t until = 1000) {
    return train_phases(fs, configs, [&](size_t phase, bool amend) {
      sessions.emplace_back(phase, amend);
      return session(configs[phase], amend, until, phase == 0 ? 2 : 1);
    });
  }

  chain::Chain chain() {
    auto out = chain::read_chain(fs, "runs/run/chain.jsonl");
    REQUIRE_MESSAGE(out.ok(), out.error().message());
    return *out;
  }
};

std::vector<train::TrainConfig> three_given(const char* rate = "0.004") {
  const train::Settings quiet = {{"trainer.steps_per_eval", "0"}, {"trainer.tracker", "[]"}};
  std::vector<train::TrainConfig> out;
  for (const train::Settings& more : std::vector<train::Settings>{
           {{"trainer.num_train_steps", "3"}, {"trainer.train_batch_size", "4"}},
           {{"trainer.num_train_steps", "5"}, {"trainer.train_batch_size", "6"}, {"optimizer.beta1", "0.8"}},
           {{"trainer.num_train_steps", "7"},
            {"trainer.train_batch_size", "6"},
            {"optimizer.beta1", "0.8"},
            {"optimizer.learning_rate", rate},
            {"data.train_weights", "{web: 0, code: 1}"}}}) {
    train::Settings all = quiet;
    all.insert(all.end(), more.begin(), more.end());
    out.push_back(train::mixed_config(all));
  }
  return out;
}

std::vector<train::TrainConfig> three(const char* rate = "0.004") {
  auto out = configs_of_phases(three_given(rate));
  REQUIRE_MESSAGE(out.ok(), out.error().message());
  return *out;
}

TEST_CASE("phases are the amends that one makes by hand, wherever they are stopped, and verify") {
  PhasedWorld by_hand;
  const auto given = three_given();
  std::string wanted;
  for (size_t i = 0; i < given.size(); ++i) {
    const auto outcome = by_hand.session(given[i], i > 0, 1000, 1);
    REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
    wanted = outcome->hash;
  }
  const auto configs = three();
  for (int64_t stop = 1; stop <= 7; ++stop) {
    CAPTURE(stop);
    PhasedWorld world;
    const auto first = world.go(configs, stop);
    REQUIRE_MESSAGE(first.ok(), first.error().message());
    CHECK(first->finished == (stop == 7));
    const auto second = world.go(configs);
    REQUIRE_MESSAGE(second.ok(), second.error().message());
    CHECK(second->finished);
    CHECK(second->hash == wanted);
    CHECK(world.sessions.back().first == 2);
  }
  PhasedWorld other;
  CHECK(other.go(three("0.005"))->hash != wanted);

  const auto report =
      audit::verify_run(by_hand.fs, *by_hand.engine, "runs/run", {}, models::builtin_models());
  REQUIRE_MESSAGE(report.ok(), report.error().message());
  CHECK_MESSAGE(report->equal, report->what);
}

// Changes a byte of an array of the checkpoint.
void damage(io::MemoryFileSystem& fs, const std::string& checkpoint) {
  const auto files = fs.list(checkpoint + "/model/head/weight");
  REQUIRE_MESSAGE(files.ok(), files.error().message());
  for (const io::DirEntry& file : *files)
    if (file.name.starts_with("c")) {
      const std::string path = checkpoint + "/model/head/weight/" + file.name;
      std::string* bytes = fs.content(path);
      REQUIRE(bytes != nullptr);
      bytes->back() = static_cast<char>(bytes->back() ^ 1);
      return;
    }
  FAIL("no chunk in ", checkpoint);
}

TEST_CASE("a run goes on in the phase of the newest checkpoint that is whole") {
  const auto configs = three();
  PhasedWorld plain;
  const std::string wanted = plain.go(configs)->hash;
  for (const int64_t stop : {5, 6, 7}) {
    CAPTURE(stop);
    PhasedWorld world;
    REQUIRE(world.go(configs, stop).ok());
    const std::string root = "runs/run/checkpoints";
    const auto before = checkpoint::list_checkpoints(world.fs, root);
    REQUIRE(before.ok());
    REQUIRE(before->size() >= 2);
    for (size_t i = 1; i < before->size(); ++i) damage(world.fs, (*before)[i].path);
    world.sessions.clear();
    const auto again = world.go(configs);
    REQUIRE_MESSAGE(again.ok(), again.error().message());
    CHECK(again->finished);
    CHECK(again->hash == wanted);
    const auto oldest = before->front().step;
    CHECK(world.sessions.front().first == (oldest < 3 ? 0 : oldest < 5 ? 1 : 2));
  }
}

TEST_CASE(
    "a checkpoint that cannot be read is passed over as resuming does it, and is kept; a later format is an "
    "error") {
  const auto configs = three();
  PhasedWorld plain;
  const std::string wanted = plain.go(configs)->hash;
  const std::string root = "runs/run/checkpoints", newest = root + "/step-00000004";
  for (const char* gone : {"/model/head/weight/zarr.json", "/manifest.json"}) {
    CAPTURE(gone);
    PhasedWorld world;
    REQUIRE(world.go(configs, 4).ok());
    const auto before = checkpoint::list_checkpoints(world.fs, root);
    REQUIRE((before.ok() && before->size() >= 2 && before->back().path == newest));
    REQUIRE((*before)[before->size() - 2].step <= 3);  // of the phase before
    REQUIRE(world.fs.remove(newest + gone).ok());
    const auto again = world.go(configs);
    REQUIRE_MESSAGE(again.ok(), again.error().message());
    CHECK(again->hash == wanted);
    const std::string aside = root + "/damaged-step-00000004";
    CHECK(world.fs.list(aside + "/model/head/weight").ok());
    CHECK(!world.fs.exists(aside + gone).value());
  }
  PhasedWorld later;
  REQUIRE(later.go(configs, 4).ok());
  const std::string file = newest + "/manifest.json";
  std::string manifest = io::remove_checksum(later.fs.read_file(file).value(), file).value();
  const size_t at = manifest.find("\"format_version\"");
  REQUIRE(at != std::string::npos);
  manifest.replace(manifest.find_first_of("0123456789", at), 1, "9");
  REQUIRE(later.fs.write_file(file, io::add_checksum(manifest)).ok());
  const auto refused = later.go(configs);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::kUnsupported);
  CHECK(later.fs.exists(newest).value());
}

TEST_CASE("a checkpoint that cannot be read for a moment is an error, and stays where it is") {
  const auto configs = three();
  const std::string root = "runs/run/checkpoints";
  PhasedWorld world;
  REQUIRE(world.go(configs, 4).ok());
  const auto before = world.fs.list(root);
  REQUIRE(before.ok());
  int refused = 0;
  for (int64_t at = 0;; ++at) {
    io::FaultyFileSystem faulty(world.fs);
    faulty.inject_read_error(at);
    const auto start = phase_to_continue(faulty, "runs/run", configs);
    if (faulty.reads() <= at) break;  // it was done before
    refused += !start.ok();
    CAPTURE(at);
    if (!start.ok()) CHECK(start.error().code() == ErrorCode::kIo);
    CHECK(*world.fs.list(root) == *before);
  }
  CHECK(refused > 10);
  const auto start = phase_to_continue(world.fs, "runs/run", configs);
  REQUIRE(start.ok());
  CHECK(start->phase == 1);
}

TEST_CASE("the amends to come are those that the chain then has") {
  PhasedWorld world;
  const auto configs = three();
  REQUIRE(world.go(configs).ok());
  const chain::Chain chain = world.chain();
  const std::string program = chain.genesis().program_hash;
  // beta1 is in the update program, so the second phase has another one.
  std::vector<std::string> programs = {program};
  std::vector<chain::AmendEntry> done;
  for (const chain::ChainLink& link : chain.links)
    if (const auto* amend = std::get_if<chain::AmendEntry>(&link.entry)) done.push_back(*amend);
  REQUIRE(done.size() == 2);
  const auto periods = audit::periods_of(configs[0], chain, "chain");
  REQUIRE(periods.ok());
  for (size_t i = 1; i < periods->size(); ++i) programs.push_back((*periods)[i].program_hash);
  const auto coming = amends_of(configs, programs);
  REQUIRE(coming.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(coming[i].step == done[i].step);
    CHECK(coming[i].difference == done[i].difference);
  }
}

TEST_CASE("the facts of periods are in the chain: steps, changes, rates, batches, tokens") {
  PhasedWorld world;
  const auto configs = three();
  REQUIRE(world.go(configs).ok());
  const auto facts = period_facts(configs[2], world.chain(), "chain");
  REQUIRE_MESSAGE(facts.ok(), facts.error().message());
  REQUIRE(facts->size() == 3);
  const int64_t first[] = {1, 4, 6}, last[] = {3, 5, 7}, batch[] = {4, 6, 6};
  for (size_t i = 0; i < 3; ++i) {
    const PeriodFacts& f = (*facts)[i];
    CHECK(f.first_step == first[i]);
    CHECK(f.last_step == last[i]);
    CHECK(f.first_batch == batch[i]);
    CHECK(f.tokens == (last[i] - first[i] + 1) * batch[i] * 16);
    CHECK(f.data_hash == world.chain().genesis().data_hash);
  }
  CHECK((*facts)[0].changes == "");
  CHECK((*facts)[1].changes.find("optimizer.beta1 from 0.9 to 0.8") != std::string::npos);
  CHECK((*facts)[2].changes.find("trainer.num_train_steps from 5 to 7") != std::string::npos);
  CHECK((*facts)[2].first_rate > (*facts)[1].first_rate);
}

TEST_CASE("phases that no amend can make are an error before the run begins") {
  auto given = three_given();
  given[1].trainer.num_train_steps = 3;
  const auto short_phase = configs_of_phases(given);
  REQUIRE(!short_phase.ok());
  CHECK(short_phase.error().message().find("leaves nothing to do after step 3") != std::string::npos);
  given = three_given();
  given[2].trainer.seed += 1;
  const auto fixed = configs_of_phases(given);
  REQUIRE(!fixed.ok());
  CHECK(fixed.error().message().find("trainer.seed") != std::string::npos);
}

}  // namespace
}  // namespace ostro::run
