#include "ostro/experiment/journal/journal.h"

#include <doctest/doctest.h>

#include "ostro/base/sha256.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/experiment/journal/pins.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::lab {
namespace {

DoneEntry entry_of(const std::string& step, const std::string& recipe) {
  return {step, recipe, sha256_hex(recipe), sha256_hex("content of " + recipe), "m"};
}

// A journal of three steps.
void write_journal(io::MemoryFileSystem& fs) {
  check_ok(fs.make_dirs("lab"));
  auto journal = Journal::open(fs, "lab");
  REQUIRE(journal.ok());
  check_ok(journal->add_plan("p"));
  for (const char* recipe : {"one", "two", "three"}) check_ok(journal->add_done(entry_of("a", recipe)));
}

TEST_CASE("a journal is read as it was written") {
  io::MemoryFileSystem fs;
  write_journal(fs);
  const auto journal = Journal::open(fs, "lab");
  REQUIRE_MESSAGE(journal.ok(), journal.error().message());
  CHECK(journal->plan_hash() == "p");
  CHECK(journal->last_of("a")->recipe == "three");
  CHECK(journal->last_of("b") == nullptr);
  CHECK(journal->find(sha256_hex("two"))->content == sha256_hex("content of two"));
  CHECK(journal->find("0") == nullptr);
  CHECK_FALSE(journal->has_conflict(sha256_hex("two")));
}

TEST_CASE("a journal says what was done again, by whom") {
  io::MemoryFileSystem fs;
  write_journal(fs);
  auto journal = Journal::open(fs, "lab");
  REQUIRE(journal.ok());
  check_ok(journal->add_audit("a", sha256_hex("one"), ""));
  check_ok(journal->add_audit("a", sha256_hex("two"), "Ann"));
  check_ok(journal->add_adopted("a", sha256_hex("three"), "steps 3 of 9"));
  check_ok(journal->add_replay("a", {sha256_hex("one"), "Bob", "2 of 9 steps", false, "text"}));
  const auto again = Journal::open(fs, "lab");
  REQUIRE_MESSAGE(again.ok(), again.error().message());
  std::string said;
  for (const Replay& r : again->replays())
    said += r.by + "/" + r.verified + (r.whole ? "/whole " : " ") + r.statement + ";";
  CHECK(said ==
        "/done again, whole/whole ;Ann/done again, whole/whole ;/steps 3 of 9 ;Bob/2 of 9 steps text;");
}

TEST_CASE("every byte of a journal that is changed is found") {
  io::MemoryFileSystem fs;
  write_journal(fs);
  const std::string whole = *fs.content("lab/journal.jsonl");
  for (size_t i = 0; i + 1 < whole.size(); ++i) {
    *fs.content("lab/journal.jsonl") = whole;
    (*fs.content("lab/journal.jsonl"))[i] ^= 1;
    INFO(i);
    CHECK_FALSE(Journal::open(fs, "lab").ok());
  }
}

TEST_CASE("an unfinished last line is cut off by the next one") {
  io::MemoryFileSystem fs;
  write_journal(fs);
  std::string& text = *fs.content("lab/journal.jsonl");
  const std::string whole = text;
  text.resize(whole.size() - 5);
  auto journal = Journal::open(fs, "lab");
  REQUIRE_MESSAGE(journal.ok(), journal.error().message());
  CHECK(journal->last_of("a")->recipe == "two");
  check_ok(journal->add_done(entry_of("a", "three")));
  CHECK(*fs.content("lab/journal.jsonl") == whole);
}

TEST_CASE("a journal that was begun survives a loss of power") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    io::MemoryFileSystem fs;
    write_journal(fs);
    fs.crash(seed);
    const auto journal = Journal::open(fs, "lab");
    REQUIRE_MESSAGE(journal.ok(), journal.error().message());
    CHECK(journal->last_of("a") != nullptr);
  }
}

TEST_CASE("a conflict is remembered") {
  io::MemoryFileSystem fs;
  write_journal(fs);
  check_ok(Journal::open(fs, "lab")->add_conflict("a", sha256_hex("two"), "x", "y"));
  CHECK(Journal::open(fs, "lab")->has_conflict(sha256_hex("two")));
}

TEST_CASE("an output that was changed is named, with its hashes; one that is gone is no error") {
  io::MemoryFileSystem fs;
  const std::string f(64, 'f'), folder = output_folder("lab", f);
  check_ok(fs.make_dirs(folder + "/sub"));
  const auto write = [&](const std::string& name, const std::string& text) {
    check_ok((*fs.create(folder + "/" + name))->append(text));
  };
  write("a", "one");
  write("sub/b", "two");
  write("log.txt", "said");
  FileHashes hashes(fs, "lab/hashes.json", true);
  const auto manifest = write_manifest(fs, "lab", f, OutputFiles::kResult, hashes);
  REQUIRE(manifest.ok());
  const auto checked = [&] {
    FileHashes again(fs, "lab/hashes.json", true);
    return check_output(fs, "lab", f, *manifest, again);
  };
  CHECK(*checked());
  write("log.txt", "said more");
  CHECK(*checked());
  write("sub/b", "twa");
  CHECK(checked().error().message().find("sub/b: was changed: its SHA-256 is " + sha256_hex("twa")) !=
        std::string::npos);
  check_ok(fs.remove(folder + "/sub/b"));
  CHECK(checked().error().message().find("sub/b: is gone") != std::string::npos);
  write("sub/b", "two");
  write("sub/c", "more");
  CHECK(checked().error().message().find("sub/c: is no part of the output") != std::string::npos);
  check_ok(fs.remove(folder + "/sub/c"));
  CHECK(*checked());
  check_ok(fs.remove_all(folder));
  CHECK_FALSE(*checked());
  check_ok(fs.make_dirs(folder));
  check_ok(fs.remove(manifest_path("lab", f)));
  CHECK_FALSE(*checked());
}

TEST_CASE("pins hold a source's files, and let them come and go with its patterns only") {
  io::MemoryFileSystem fs;
  auto pins = Pins::read(fs, "lab.lock");
  const std::vector<PinnedFile> files = {{"b", "2"}, {"a", "1"}};
  check_ok(pins->pin("l/s", {"*"}, files));
  check_ok(pins->save());
  pins = Pins::read(fs, "lab.lock");
  REQUIRE_MESSAGE(pins.ok(), pins.error().message());
  check_ok(pins->pin("l/s", {"*"}, files));
  const auto refused = [&](const std::vector<std::string>& patterns, const std::vector<PinnedFile>& now) {
    Pins copy = *pins;
    const Status done = copy.pin("l/s", patterns, now);
    return done.ok() ? std::string() : done.error().message();
  };
  CHECK(refused({"*"}, {{"b", "2"}, {"a", "3"}}).find("a has changed: its SHA-256 is 3, lab.lock has 1") ==
        0);
  CHECK(refused({"*"}, {{"b", "2"}}).find("a is gone") == 0);
  CHECK(refused({"*"}, {{"b", "2"}, {"a", "1"}, {"c", "3"}}).find("c is new") == 0);
  CHECK(refused({"b", "c"}, {{"b", "2"}, {"c", "3"}}).empty());
  CHECK(refused({"a"}, {{"a", "3"}}).find("a has changed") == 0);
  pins->forget("l/s");
  check_ok(pins->pin("l/s", {"*"}, {{"a", "3"}}));
  *fs.content("lab.lock") = "[]";
  CHECK_FALSE(Pins::read(fs, "lab.lock").ok());
}

TEST_CASE("of any program's output every file counts, whatever its name is") {
  io::MemoryFileSystem fs;
  const std::string f(64, 'f'), folder = output_folder("lab", f);
  const std::vector<std::string> files = {"log.txt", "run.json", "a.lock", "b.tmp", "tb/c", "lock"};
  check_ok(fs.make_dirs(folder + "/tb"));
  for (const std::string& file : files) check_ok(fs.write_file(folder + "/" + file, "one"));
  for (const OutputFiles which : {OutputFiles::kAll, OutputFiles::kResult}) {
    FileHashes hashes(fs, "lab/hashes.json", true);
    const auto manifest = write_manifest(fs, "lab", f, which, hashes);
    REQUIRE(manifest.ok());
    const auto check = [&] {
      FileHashes again(fs, "lab/hashes.json", true);
      return check_output(fs, "lab", f, *manifest, again);
    };
    for (const std::string& file : files) {
      INFO(file);
      CHECK(*check());
      check_ok(fs.write_file(folder + "/" + file, "two"));
      const auto changed = check();
      if (which == OutputFiles::kAll) {
        REQUIRE_FALSE(changed.ok());
        CHECK(changed.error().message().find(file + ": was changed") != std::string::npos);
      } else {
        CHECK(*changed);
      }
      check_ok(fs.write_file(folder + "/" + file, "one"));
    }
    check_ok(fs.write_file(folder + "/report.html", "more"));
    CHECK(check().ok() == (which == OutputFiles::kResult));
    check_ok(fs.remove(folder + "/report.html"));
  }
}

TEST_CASE("two labs of one folder keep each other's pins") {
  io::MemoryFileSystem fs;
  const std::vector<PinnedFile> files = {{"a", "1"}};
  auto one = Pins::read(fs, "lab.lock"), two = Pins::read(fs, "lab.lock");
  check_ok(one->pin("one/s", {"*"}, files));
  check_ok(two->pin("two/s", {"*"}, files));
  check_ok(one->save());
  check_ok(two->save());
  CHECK(Pins::read(fs, "lab.lock")->has("one/s"));
  CHECK(Pins::read(fs, "lab.lock")->has("two/s"));
  one->forget("one/s");
  check_ok(one->save());
  CHECK_FALSE(Pins::read(fs, "lab.lock")->has("one/s"));
  CHECK(Pins::read(fs, "lab.lock")->has("two/s"));
}

}  // namespace
}  // namespace ostro::lab
