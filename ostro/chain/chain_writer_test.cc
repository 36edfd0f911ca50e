#include "ostro/chain/chain_writer.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <functional>

#include "ostro/chain/example_chain_for_test.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/objects/s3/fake_s3_for_test.h"
#include "ostro/objects/s3/s3_file_system.h"

namespace ostro::chain {
namespace {

TEST_CASE("entries that make no sense are refused before anything is written") {
  ExampleRun run;
  auto writer = ChainWriter::create(run.fs, kPath, genesis());
  REQUIRE(writer.ok());
  StepEntry bad = step(1);
  bad.loss = std::nan("");
  CHECK(writer->append(bad).error().message().find("the loss of step 1 is nan") != std::string::npos);
  bad = step(1);
  bad.batch = "XY";
  CHECK(!writer->append(bad).ok());
  bad = step(1);
  bad.leaves = "ab";
  CHECK(!writer->append(bad).ok());
  CHECK(!writer->append(step(2)).ok());
  CHECK(!writer->append(checkpoint(1)).ok());
  CHECK(!writer->append(AmendEntry{0, "[]"}).ok());
  CHECK(writer->chain().links.size() == 1);
  const char* difference = R"({"trainer.seed": {"from": 0, "to": 1}})";
  CHECK(!writer->append(AmendEntry{0, difference}).ok());
  check_ok(writer->append(step(1)));
  check_ok(writer->append(AmendEntry{1, difference}));
  CHECK(writer->append(checkpoint(1)).error().message().find("step 1 behind an amend of it") !=
        std::string::npos);
  CHECK(read_chain(run.fs, kPath)->links.size() == 3);
  CHECK(ChainWriter::create(run.fs, kPath, genesis()).error().code() == ErrorCode::kBusy);
}

TEST_CASE("truncating keeps the entries of the step and ignores what follows, damaged or not") {
  ExampleRun run;
  {
    auto writer = ChainWriter::create(run.fs, kPath, genesis());
    REQUIRE(writer.ok());
    for (int64_t n = 1; n <= 5; ++n) {
      check_ok(writer->append(step(n)));
      if (n == 2) check_ok(writer->append(checkpoint(2)));
      if (n == 2) check_ok(writer->append(AmendEntry{2, "{\"a\":1}"}));
    }
  }
  const std::string whole = run.text();
  for (int64_t n = 0; n <= 5; ++n) {
    run.set_text(whole);
    const Result<Chain> chain = truncate_to_step(run.fs, kPath, n);
    REQUIRE(chain.ok());
    CHECK(chain->last_step() == n);
    CHECK(chain->links.size() == static_cast<size_t>(n <= 1 ? n + 1 : n + 3));
    CHECK(whole.starts_with(run.text()));
    CHECK(read_chain(run.fs, kPath)->head() == chain->head());
    CHECK(static_cast<int64_t>(run.text().size()) == chain->bytes);
  }
  const int64_t kept = read_chain_to(run.fs, kPath, 2)->bytes;
  run.set_text(whole.substr(0, static_cast<size_t>(kept)) + std::string(500, '\0') + "\nx\n");
  CHECK(!read_chain(run.fs, kPath).ok());
  CHECK(truncate_to_step(run.fs, kPath, 2)->bytes == kept);
  CHECK(run.text() == whole.substr(0, static_cast<size_t>(kept)));
  CHECK(truncate_to_step(run.fs, kPath, 3).error().message().find("ends at step 2, but step 3") !=
        std::string::npos);
}

TEST_CASE("entries wait for the name of a checkpoint, so that the order never depends on time") {
  ExampleRun run, slow;
  {
    auto writer = ChainWriter::create(run.fs, kPath, genesis());
    check_ok(writer->append(step(1)));
    check_ok(writer->append(checkpoint(1)));
    check_ok(writer->append(step(2)));
    check_ok(writer->append(step(3)));
  }
  auto writer = ChainWriter::create(slow.fs, kPath, genesis());
  check_ok(writer->append(step(1)));
  const std::string before = slow.text();
  writer->expect_checkpoint();
  check_ok(writer->append(step(2)));
  check_ok(writer->append(step(3)));
  CHECK(slow.text() == before);
  CHECK(writer->expects_checkpoint());
  check_ok(writer->append(checkpoint(1)));
  CHECK(!writer->expects_checkpoint());
  CHECK(slow.text() == run.text());
}

TEST_CASE("whatever goes wrong while writing, what was synced is there and the rest can be written again") {
  std::string whole;
  int64_t operations = 0;
  {
    ExampleRun run;
    io::FaultyFileSystem faulty(run.fs);
    write_example(faulty);
    whole = run.text();
    operations = faulty.writes();
  }
  REQUIRE(operations > 8);
  for (const io::Fault fault : {io::Fault::kIoError, io::Fault::kShortWrite, io::Fault::kDiskFull,
                                io::Fault::kSyncError, io::Fault::kCrash}) {
    for (int64_t at = 0; at < operations; ++at) {
      ExampleRun run;
      io::FaultyFileSystem faulty(run.fs);
      faulty.inject(fault, at);
      Status status;
      int64_t synced = -1;  // the step up to which the chain is durable
      if (auto writer = ChainWriter::create(faulty, kPath, genesis()); writer.ok()) {
        synced = 0;
        status = writer->append(step(1));
        if (status.ok()) status = writer->append(step(2));
        if (status.ok()) status = writer->append(checkpoint(2));
        if (status.ok()) synced = 2;
        if (!status.ok()) CHECK(!writer->append(step(3)).ok());
      }
      if (fault == io::Fault::kCrash) run.fs.crash(static_cast<uint64_t>(at));
      CHECK_MESSAGE((synced == 2 || faulty.triggered()), at);
      if (!*run.fs.exists(kPath)) {
        CHECK(synced == -1);
        continue;
      }
      const Result<Chain> chain = read_chain_to(run.fs, kPath, std::max<int64_t>(synced, 0));
      REQUIRE_MESSAGE(chain.ok(), chain.error().message());
      auto writer = ChainWriter::resume(run.fs, kPath, std::max<int64_t>(synced, 0));
      REQUIRE(writer.ok());
      for (int64_t n = writer->chain().last_step() + 1; n <= 2; ++n) check_ok(writer->append(step(n)));
      if (writer->chain().find_checkpoint(2) == nullptr) check_ok(writer->append(checkpoint(2)));
      CHECK(run.text() == whole);
    }
  }
}

TEST_CASE("a chain whose file was removed, moved or replaced is not called written") {
  const auto error_after = [](const std::function<void(io::MemoryFileSystem&)>& accident) {
    io::MemoryFileSystem fs;
    check_ok(fs.make_dirs("run"));
    auto writer = ChainWriter::create(fs, kPath, genesis());
    REQUIRE(writer.ok());
    check_ok(writer->append(step(1)));
    check_ok(writer->sync());
    accident(fs);
    check_ok(writer->append(step(2)));
    const Status status = writer->sync();
    if (status.ok()) return std::string();
    CHECK(status.error().code() == ErrorCode::kIo);
    CHECK(!writer->append(step(3)).ok());  // nothing goes on behind what is lost
    return status.error().message();
  };
  CHECK(error_after([](io::MemoryFileSystem&) {}) == "");
  const auto copied = [](io::MemoryFileSystem& fs) {
    const std::string text = *fs.content(kPath);
    check_ok(fs.remove(kPath));
    check_ok(io::write_file_atomically(fs, kPath, text));
  };
  const auto longer = [&](io::MemoryFileSystem& fs) {
    copied(fs);
    check_ok((*fs.open_append(kPath))->append(std::string(2000, ' ')));
  };
  for (const auto& [accident, word] :
       std::vector<std::pair<std::function<void(io::MemoryFileSystem&)>, const char*>>{
           {[](io::MemoryFileSystem& fs) { check_ok(fs.remove(kPath)); }, "is gone"},
           {[](io::MemoryFileSystem& fs) { check_ok(fs.rename("run", "elsewhere")); }, "is gone"},
           {copied, "bytes, but"},
           {longer, "bytes, but"}}) {
    const std::string error = error_after(accident);
    CHECK_MESSAGE(error.starts_with(kPath + ": "), error);
    CHECK_MESSAGE(error.find(word) != std::string::npos, error);
    CHECK_MESSAGE(error.find("was removed, moved or replaced while") != std::string::npos, error);
  }
}

// Run by the next case in a process of its own, with a failpoint set.
TEST_CASE("child: three steps into $OSTRO_CHAIN_TEST" * doctest::skip()) {
  const char* path = std::getenv("OSTRO_CHAIN_TEST");
  REQUIRE(path != nullptr);
  auto writer = ChainWriter::create(io::local_file_system(), path, genesis());
  REQUIRE(writer.ok());
  for (int64_t n = 1; n <= 3; ++n) check_ok(writer->append(step(n)));
}

TEST_CASE("a process killed in the middle of a line leaves a torn line") {
  const std::string folder = "/tmp/ostro_chain_test_" + std::to_string(getpid()),
                    path = folder + "/chain.jsonl";
  io::FileSystem& fs = io::local_file_system();
  check_ok(fs.make_dirs(folder));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("OSTRO_FAILPOINT", "chain_append:2", 1);
    setenv("OSTRO_CHAIN_TEST", path.c_str(), 1);
    execl("/proc/self/exe", "train_test", "--no-skip", "--test-case=child: three steps*", nullptr);
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  const Result<Chain> chain = read_chain(fs, path);
  REQUIRE_MESSAGE(chain.ok(), chain.error().message());
  CHECK(chain->last_step() == 1);
  CHECK(chain->torn_bytes > 0);
  auto writer = ChainWriter::resume(fs, path, 1);
  REQUIRE(writer.ok());
  check_ok(writer->append(step(2)));
  CHECK(read_chain(fs, path)->last_step() == 2);
  check_ok(fs.remove_all(folder));
}

// In an object store another process may write at any time, until the lock tells which of the two goes on.
TEST_CASE("in an object store a chain is begun, and cut, only while no other process has written it") {
  const std::string path = "s3://b/run/chain.jsonl", key = "b/run/chain.jsonl";
  for (const bool meanwhile : {false, true}) {
    objects::FakeS3 http;
    objects::FakeClock clock;
    const auto fs = objects::s3_file_system({.endpoint = "http://s3"}, http, clock);
    http.objects["b/else"] = "1";
    std::string whole;
    {
      auto writer = ChainWriter::create(*fs, path, genesis());
      REQUIRE_MESSAGE(writer.ok(), writer.error().message());
      for (int64_t n = 1; n <= 3; ++n) check_ok(writer->append(step(n)));
      check_ok(writer->sync());
      whole = http.objects[key];
      check_ok(writer->append(step(4)));
      check_ok(writer->sync());
    }
    const std::string theirs = http.objects[key] + "a line of another process\n";
    http.before = [&](const std::string& line) {
      if (!meanwhile || line != "PUT " + key) return;
      http.objects[key] = theirs;
      http.write_ids[key] = "another";
    };
    const auto cut = truncate_to_step(*fs, path, 3);
    CHECK(cut.ok() != meanwhile);
    CHECK(http.objects[key] == (meanwhile ? theirs : whole));
    if (!meanwhile) CHECK(ChainWriter::resume(*fs, path, 3)->chain().last_step() == 3);
    http.objects.erase(key);
    CHECK(ChainWriter::create(*fs, path, genesis()).ok() != meanwhile);
    if (meanwhile) CHECK(http.objects[key] == theirs);
    CHECK(read_chain(*fs, "s3://b/run/none.jsonl").error().code() == ErrorCode::kNotFound);
    CHECK_FALSE(truncate_to_step(*fs, "s3://b/run/none.jsonl", 3).ok());
    CHECK_FALSE(http.objects.contains("b/run/none.jsonl"));
  }
}

}  // namespace
}  // namespace ostro::chain
