// Where a replay begins when checkpoints are damaged. What it compares, over amends and workers, is in
// amend_test.cc.
#include "ostro/train/verify/verify.h"

#include <doctest/doctest.h>

#include "ostro/checkpoint/catalog.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/train/run/mixed_run_for_test.h"
#include "ostro/train/run/run.h"

namespace ostro::train {
namespace {

const std::string kCheckpoints = "runs/run/checkpoints/";

// A finished run of seven steps with checkpoints of the even ones.
void finish_run(io::FileSystem& fs, runtime::Engine& engine) {
  write_mixed_files(fs);
  const auto run = Run::open(mixed_config({}), {fs, engine, 1, {}, {}, {}});
  REQUIRE_MESSAGE(run.ok(), run.error().message());
  const auto outcome = (*run)->train({});
  REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
}

Result<VerifyReport> verify_from(io::FileSystem& fs, runtime::Engine& engine, int64_t step) {
  VerifyOptions options;
  options.from_step = step;
  return verify_run(fs, engine, "runs/run", options, builtin_models());
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

TEST_CASE("a sound checkpoint of another state is an error: the chain vouches for its name") {
  const auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  io::MemoryFileSystem fs;
  finish_run(fs, **engine);
  const std::string four = kCheckpoints + checkpoint::step_directory(4);
  check_ok(checkpoint::remove_checkpoint(fs, four));
  check_ok(fs.rename(kCheckpoints + checkpoint::step_directory(2), four));
  const auto report = verify_from(fs, **engine, 5);
  REQUIRE(!report.ok());
  CHECK_MESSAGE(report.error().message().find(four) != std::string::npos, report.error().message());
}

}  // namespace
}  // namespace ostro::train
