// Where a replay begins when checkpoints are damaged or forged, and what is said of each. What it compares,
// over amends and workers, is in amend_test.cc.
#include "ostro/audit/verify.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "ostro/audit/record/check_checkpoints.h"
#include "ostro/base/log_capture_for_test.h"
#include "ostro/chain/chain_writer.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro::audit {
namespace {

const std::string kCheckpoints = "runs/run/checkpoints/";

// A finished run of seven steps with checkpoints of the even ones.
void finish_run(io::FileSystem& fs, runtime::Engine& engine) {
  train::write_mixed_files(fs);
  const auto run = run::Run::open(train::mixed_config({}), {fs, engine, 1, {}, {}, {}});
  REQUIRE_MESSAGE(run.ok(), run.error().message());
  const auto outcome = (*run)->train({});
  REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
}

Result<VerifyReport> verify_from(io::FileSystem& fs, runtime::Engine& engine, int64_t step) {
  VerifyOptions options;
  options.from_step = step;
  return verify_run(fs, engine, "runs/run", options, models::builtin_models());
}

// Alters the first value of every chunk below `path`; how many there are.
int damage_chunks(io::MemoryFileSystem& fs, const std::string& path) {
  const auto names = fs.list(path);
  REQUIRE(names.ok());
  int chunks = 0;
  for (const io::DirEntry& entry : *names) {
    const std::string inside = path + "/" + entry.name;
    if (entry.is_directory) {
      chunks += damage_chunks(fs, inside);
    } else if (entry.name.starts_with("c.")) {
      fs.content(inside)->front() ^= 1;
      ++chunks;
    }
  }
  return chunks;
}

void damage(io::MemoryFileSystem& fs, int64_t step) {
  REQUIRE(damage_chunks(fs, kCheckpoints + checkpoint::step_directory(step)) > 20);
}

TEST_CASE("verify replays from an older state when a checkpoint cannot be read") {
  const auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  io::MemoryFileSystem fs;
  finish_run(fs, **engine);
  const auto start = [&] {
    const auto report = verify_from(fs, **engine, 5);
    REQUIRE_MESSAGE(report.ok(), report.error().message());
    CHECK(report->equal);
    CHECK(report->last_step == 7);
    return report->start_step;
  };
  CHECK(start() == 4);
  damage(fs, 4);
  CHECK(start() == 2);
  damage(fs, 2);
  CHECK(start() == 0);
}

TEST_CASE("a sound checkpoint of another state is passed over: the chain vouches for its name") {
  const auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  io::MemoryFileSystem fs;
  finish_run(fs, **engine);
  const std::string four = kCheckpoints + checkpoint::step_directory(4);
  check_ok(checkpoint::remove_checkpoint(fs, four));
  check_ok(fs.rename(kCheckpoints + checkpoint::step_directory(2), four));
  LogCapture log;
  const auto report = verify_from(fs, **engine, 5);
  REQUIRE_MESSAGE(report.ok(), report.error().message());
  CHECK(report->equal);
  CHECK(report->start_step == 0);
  CHECK_MESSAGE(log.lines.find(four + ": forged") != std::string::npos, log.lines);
}

std::string verdicts(io::FileSystem& fs) {
  const auto chain = chain::read_chain(fs, "runs/run/chain.jsonl");
  REQUIRE(chain.ok());
  const auto checked = check_checkpoints(fs, "runs/run", *chain, models::builtin_models());
  REQUIRE(checked.ok());
  std::string out;
  for (const CheckedCheckpoint& c : *checked) out += fmt::format("{} {}, ", c.step, verdict_name(c.verdict));
  return out;
}

TEST_CASE("every checkpoint gets a verdict, and so does one that is not there") {
  const auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  io::MemoryFileSystem fs;
  finish_run(fs, **engine);
  CHECK(verdicts(fs) == "2 fine, 4 fine, 6 fine, 7 fine, ");
  check_ok(checkpoint::remove_checkpoint(fs, kCheckpoints + checkpoint::step_directory(4)));
  damage(fs, 6);
  check_ok(
      fs.rename(kCheckpoints + checkpoint::step_directory(2), kCheckpoints + checkpoint::step_directory(3)));
  CHECK(verdicts(fs) == "2 missing, 3 forged, 4 missing, 6 damaged, 7 fine, ");
  check_ok(fs.remove_all(kCheckpoints));
  CHECK(verdicts(fs) == "2 missing, 4 missing, 6 missing, 7 missing, ");
}

TEST_CASE("a checkpoint entry that was due and is not there, or is there and was not due, is a difference") {
  const auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  io::MemoryFileSystem fs;
  finish_run(fs, **engine);
  const auto chain = chain::read_chain(fs, "runs/run/chain.jsonl");
  REQUIRE(chain.ok());
  // Replays the chain with these checkpoint entries.
  const auto replay_with = [&](const std::map<int64_t, std::string>& names) {
    check_ok(fs.remove("runs/run/chain.jsonl"));
    auto writer = chain::ChainWriter::create(fs, "runs/run/chain.jsonl", chain->genesis());
    REQUIRE(writer.ok());
    for (const chain::ChainLink& link : chain->links) {
      const auto* step = std::get_if<chain::StepEntry>(&link.entry);
      if (step == nullptr) continue;
      check_ok(writer->append(*step));
      if (const auto name = names.find(step->step); name != names.end())
        check_ok(writer->append(chain::CheckpointEntry{name->first, name->second}));
    }
    const auto report = verify_from(fs, **engine, 0);
    REQUIRE_MESSAGE(report.ok(), report.error().message());
    return report->equal ? std::string("equal")
                         : fmt::format("{} {} {} {}", report->different_step, report->what, report->recorded,
                                       report->replayed);
  };
  std::map<int64_t, std::string> names;
  for (const int64_t step : {2, 4, 6, 7}) names[step] = *chain->find_checkpoint(step);
  CHECK(replay_with(names) == "equal");
  const std::string four = names[4];
  names.erase(4);
  CHECK(replay_with(names) == "4 checkpoint none " + four);
  names[4] = names[2];
  CHECK(replay_with(names) == "4 checkpoint " + names[2] + " " + four);
  names[4] = four;
  names[5] = std::string(64, 'a');
  CHECK(replay_with(names) == "5 checkpoint " + names[5] + " none");
  // A process that was killed before the entry of its last step.
  names.erase(5);
  names.erase(7);
  CHECK(replay_with(names) == "equal");
}

TEST_CASE("a genesis with other roots than the data's is refused, and one that this program cannot compute") {
  const auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  io::MemoryFileSystem fs;
  finish_run(fs, **engine);
  const auto chain = chain::read_chain(fs, "runs/run/chain.jsonl");
  REQUIRE(chain.ok());
  const auto& roots = chain->genesis().data_roots;
  CHECK(roots.size() == train::mixed_config({}).data.components.size());
  CHECK(chain->genesis().format == 2);
  CHECK(verify_from(fs, **engine, 7)->equal);
  // The errors of verifying and of continuing the run with another genesis.
  const auto errors = [&](const auto& change) {
    chain::GenesisEntry genesis = chain->genesis();
    change(genesis);
    check_ok(fs.remove("runs/run/chain.jsonl"));
    REQUIRE(chain::ChainWriter::create(fs, "runs/run/chain.jsonl", genesis).ok());
    const auto report = verify_from(fs, **engine, 0);
    const auto run = run::Run::open(train::mixed_config({}), {fs, **engine, 1, {}, {}, {}});
    return std::pair(report.ok() ? "" : report.error().message(), run.ok() ? "" : run.error().message());
  };
  const auto holds = [](const std::string& text, const char* part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  holds(errors([](chain::GenesisEntry& g) { g.data_roots.begin()->second = std::string(64, '0'); }).first,
        "runs/run/chain.jsonl: the genesis has the data roots {");
  holds(errors([](chain::GenesisEntry& g) { g.data_roots.erase(g.data_roots.begin()); }).first,
        "the genesis has the data roots");
  holds(errors([](chain::GenesisEntry& g) { g.data_roots.clear(); }).first,
        "the genesis has the data roots {}");
  const auto [verified, opened] =
      errors([](chain::GenesisEntry& g) { g.numerics_options = R"({"block":256})"; });
  for (const std::string& error : {verified, opened})
    holds(
        error,
        R"(runs/run: the run has the numerics options {"block":256}; this program computes {} or {"block":256,"products":"int8"} or)");
  const auto [fork_verified, fork_opened] =
      errors([](chain::GenesisEntry& g) { g.fork = chain::Fork{std::string(64, 'a'), 0}; });
  for (const std::string& error : {fork_verified, fork_opened})
    holds(error, "has no name of the state that it began with");
}

TEST_CASE("a replay tells of a temporary checkpoint what the chain cannot") {
  std::vector<CheckedCheckpoint> checked = {{3, "a", CheckpointVerdict::kTemporary, "name", ""},
                                            {4, "b", CheckpointVerdict::kTemporary, "forged name", ""},
                                            {5, "c", CheckpointVerdict::kTemporary, "other", ""},
                                            {6, "d", CheckpointVerdict::kDamaged, "name", ""}};
  compare_with_replay({{3, "name"}, {4, "name"}, {6, "name"}}, -1, checked);
  CHECK(checked[0].fine());
  CHECK(checked[1].verdict == CheckpointVerdict::kForged);
  CHECK(checked[1].detail.find("forged name") != std::string::npos);
  CHECK(checked[2].fine());
  CHECK(checked[3].verdict == CheckpointVerdict::kDamaged);
}

}  // namespace
}  // namespace ostro::audit
