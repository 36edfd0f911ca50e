// Checkpoints in an object store of which this machine has kept what it wrote: what is right in scratch is
// not fetched, and nothing that is wrong there changes a byte.
#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/checkpoint/save.h"
#include "ostro/checkpoint/scratch.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/objects/s3/fake_s3_for_test.h"
#include "ostro/objects/s3/s3_file_system.h"

using namespace ostro;
using namespace ostro::checkpoint;

namespace {

constexpr const char* kRunInStore = "s3://b/runs/nano";
constexpr const char* kCheckpointsInStore = "s3://b/runs/nano/checkpoints";

// The tensor of a state: three cells, the last one smaller.
std::string content_of(char letter) { return {letter, 1, letter, 0, letter}; }

struct MachineWithScratch {
  objects::FakeS3 http;
  objects::FakeClock clock;
  std::unique_ptr<io::FileSystem> store =
      objects::s3_file_system({.endpoint = "http://s3", .retry = {.attempts = 1}}, http, clock);
  io::MemoryFileSystem memory;
  io::FaultyFileSystem disk{memory};
  std::unique_ptr<ScratchFileSystem> process = another_process();

  MachineWithScratch() { http.objects["b/else"] = "a bucket of this server has something in it"; }

  std::unique_ptr<ScratchFileSystem> another_process(const char* run = kRunInStore) {
    return std::make_unique<ScratchFileSystem>(*store, disk, "/scratch", run);
  }
  static std::vector<TensorSpec> tensors() { return {{"model/w", "bool", {"embed"}, {5}, {2}}}; }
  Result<Saved> save(io::FileSystem& fs, int64_t step, char letter) {
    const std::string bytes = content_of(letter);
    const std::vector<Tensor> one = {{tensors()[0], std::as_bytes(std::span(bytes)), nullptr}};
    Info info{.step = step, .numerics_version = "1", .config = "c\n", .chain_head = std::string(1, letter)};
    return checkpoint::save(fs, kCheckpointsInStore, std::move(info), one, {.threads = 1});
  }
  // The tensor as it is read; what was asked of the store is then in http.log.
  std::string read(io::FileSystem& fs, int64_t step) {
    http.log.clear();
    const auto opened = Checkpoint::open(fs, std::string(kCheckpointsInStore) + "/" + step_directory(step));
    REQUIRE(opened.ok());
    std::string bytes(5, '?');
    const Status status = opened->read(0, std::as_writable_bytes(std::span(bytes)));
    REQUIRE_MESSAGE(status.ok(), status.error().message());
    return bytes;
  }
  // Of arrays of checkpoints.
  int64_t fetched() const {
    return std::count_if(http.log.begin(), http.log.end(), [](const std::string& line) {
      return line.starts_with("GET ") && line.find("/model/w/") != std::string::npos;
    });
  }
  std::string* kept(int64_t step, const char* chunk, int place = 0) {
    return memory.content(
        fmt::format("{}/{}/{}/model/w/{}", process->folder(), place, step_directory(step), chunk));
  }
  std::string steps(int place = 0) {
    std::string out;
    const auto entries = memory.list(fmt::format("{}/{}", process->folder(), place));
    if (!entries.ok()) return "none";
    for (const io::DirEntry& entry : *entries)
      if (entry.is_directory) out += entry.name.substr(std::string("step-0000000").size());
    return out;
  }
};

// The warnings of the log, as long as it lives.
struct WarningsHeard {
  std::vector<std::string> lines;
  LogSink before = set_log_sink([this](LogLevel level, std::string_view line) {
    if (level == LogLevel::kWarning) lines.emplace_back(line);
  });
  ~WarningsHeard() { set_log_sink(std::move(before)); }
};

}  // namespace

TEST_CASE("scratch: what this machine wrote of a checkpoint is not fetched") {
  MachineWithScratch m;
  REQUIRE(m.save(*m.process, 4, 'a').ok());
  CHECK(m.read(*m.process, 4) == content_of('a'));
  CHECK(m.fetched() == 0);
  // The control: without scratch all of it is.
  CHECK(m.read(*m.store, 4) == content_of('a'));
  CHECK(m.fetched() == 4);  // three chunks and zarr.json
  // So it is when the checkpoint itself is looked at.
  REQUIRE(Checkpoint::open(*m.process, std::string(kCheckpointsInStore) + "/step-00000004")->verify().ok());
  CHECK(m.fetched() == 8);
  // The process ends, and another one takes its place and what is there.
  m.process.reset();
  m.process = m.another_process();
  CHECK(m.read(*m.process, 4) == content_of('a'));
  CHECK(m.fetched() == 0);
  REQUIRE(m.save(*m.process, 8, 'b').ok());
  CHECK(m.steps() == "48");
}

TEST_CASE("scratch: what is damaged, of another state, or gone is read from the store") {
  MachineWithScratch m;
  REQUIRE(m.save(*m.process, 4, 'a').ok());
  (*m.kept(4, "c.1"))[0] ^= 1;
  CHECK(m.read(*m.process, 4) == content_of('a'));
  CHECK(m.fetched() == 2);  // that chunk, and zarr.json
  m.kept(4, "c.2")->pop_back();
  m.kept(4, "c.0")->clear();
  CHECK(m.read(*m.process, 4) == content_of('a'));
  CHECK(m.fetched() == 4);
  // Another machine has done the step again, with another state.
  REQUIRE(m.save(*m.store, 4, 'b').ok());
  CHECK(m.read(*m.process, 4) == content_of('b'));
  CHECK(m.fetched() == 4);
  REQUIRE(m.memory.remove_all("/scratch").ok());
  CHECK(m.read(*m.process, 4) == content_of('b'));
  CHECK(m.fetched() == 4);
  // A disk that does not answer is like one on which there is nothing.
  REQUIRE(m.save(*m.process, 8, 'a').ok());
  for (int64_t at = 0; at < 8; ++at) {
    m.disk.inject_read_error(at);
    CHECK(m.read(*m.process, 8) == content_of('a'));
  }
  m.disk.heal();
  // The store is what counts: damage there is damage, unless nothing is read from there.
  m.http.objects["b/runs/nano/checkpoints/step-00000008/model/w/c.0"][0] ^= 1;
  CHECK(m.read(*m.process, 8) == content_of('a'));
  const auto opened = Checkpoint::open(*m.process, std::string(kCheckpointsInStore) + "/step-00000008");
  CHECK(opened->verify().error().code() == ErrorCode::kCorrupt);
}

TEST_CASE("scratch: it has the newest whole checkpoint and the one that is written, and no more") {
  MachineWithScratch m;
  for (const int64_t step : {1, 2, 3}) REQUIRE(m.save(*m.process, step, 'a').ok());
  CHECK(m.steps() == "23");
  // One that was never whole does not push out the one before it.
  m.http.objects.erase("b/runs/nano/checkpoints/step-00000003/manifest.json");
  REQUIRE(m.save(*m.process, 4, 'a').ok());
  CHECK(m.steps() == "24");
  // The run is begun again from an earlier step.
  REQUIRE(m.save(*m.process, 3, 'b').ok());
  CHECK(m.steps() == "23");
  CHECK(m.kept(3, "c.0") != nullptr);
}

TEST_CASE("scratch: processes and runs have places of their own") {
  MachineWithScratch m;
  const auto other = m.another_process();
  REQUIRE(m.save(*m.process, 1, 'a').ok());
  REQUIRE(m.save(*other, 2, 'a').ok());
  CHECK(m.steps(0) == "1");
  CHECK(m.steps(1) == "2");
  // Each reads what the other one wrote.
  CHECK(m.read(*m.process, 2) == content_of('a'));
  CHECK(m.fetched() == 0);
  // What one that has ended left is removed by the others; what one that lives has is its own.
  REQUIRE(m.save(*other, 3, 'a').ok());
  CHECK(m.steps(0) == "1");
  m.process.reset();
  m.process = m.another_process();
  REQUIRE(m.save(*other, 4, 'a').ok());
  CHECK(m.steps(0) == "");
  CHECK(m.steps(1) == "34");
  // Of the same step, one place has what is damaged in the other.
  REQUIRE(m.save(*m.process, 4, 'a').ok());
  (*m.kept(4, "c.0", 0))[0] ^= 1;
  REQUIRE(m.kept(4, "c.0", 1) != nullptr);
  CHECK(m.read(*other, 4) == content_of('a'));
  CHECK(m.fetched() == 0);
  // Another run, also of the same name.
  const auto run = m.another_process("s3://b/else/nano");
  CHECK(run->folder() != m.process->folder());
  CHECK(run->folders_of(std::string(kCheckpointsInStore) + "/step-00000004").empty());
}

TEST_CASE("scratch: a disk that is full costs the cache, and one warning") {
  MachineWithScratch m;
  const WarningsHeard heard;
  REQUIRE(m.save(*m.process, 1, 'a').ok());
  m.disk.limit_space(3);
  REQUIRE(m.save(*m.process, 2, 'b').ok());
  REQUIRE(m.save(*m.process, 3, 'c').ok());
  CHECK(heard.lines.size() == 1);
  CHECK(m.steps() == "");  // a part of one gives its room back, and what is older than the newest goes
  CHECK(m.read(*m.process, 3) == content_of('c'));
  CHECK(m.fetched() == 4);
  m.disk.heal();
  REQUIRE(m.save(*m.process, 4, 'd').ok());
  CHECK(m.read(*m.process, 4) == content_of('d'));
  CHECK(m.fetched() == 0);
  // At whatever moment the disk is full, or fails once.
  for (int64_t at = 0; at < 60; ++at) {
    const int64_t step = 5 + at;
    m.disk.inject(at % 2 == 0 ? io::Fault::kDiskFull : io::Fault::kIoError, at / 2);
    REQUIRE(m.save(*m.process, step, 'e').ok());
    CHECK(m.read(*m.process, step) == content_of('e'));
    m.disk.heal();
  }
  CHECK(heard.lines.size() == 1);
}
