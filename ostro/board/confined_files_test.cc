// Paths that lead out of the folders of a check, and paths that stay in them.
#include "ostro/board/confined_files.h"

#include <doctest/doctest.h>

#include "ostro/io/files/memory_file_system.h"

namespace ostro::board {
namespace {

// Reading says so for what is outside, and what the memory says for the rest.
bool is_inside(const std::string& path, const std::string& folder) {
  io::MemoryFileSystem memory;
  ConfinedFiles files(memory, {"", folder});
  const auto read = files.read_file(path);
  return read.ok() || read.error().message().find("reads nothing outside of " + folder) == std::string::npos;
}

}  // namespace

TEST_CASE("a check reads what lies below its folders, and nothing else") {
  for (const char* path :
       {"entry", "entry/record/chain.jsonl", "./entry/a", "entry/../entry/a", "x/../entry/a"})
    CHECK_MESSAGE(is_inside(path, "entry"), path);
  CHECK(is_inside("entry/a", "entry/"));
  CHECK(is_inside("/work/entry/a", "/work/entry"));
  CHECK(is_inside("s3://track/store/a", "s3://track/store"));
  for (const char* path : {".", "other", "entry2/a", "entry/../other", "../entry/a", "/etc/passwd",
                           "/entry/a", "s3://entry/a", "s3://../entry/a", "entry/../../etc/passwd"})
    CHECK_MESSAGE(!is_inside(path, "entry"), path);
  for (const char* path :
       {"s3://track/other", "s3://track/store/../other", "s3:/track/store/a", "s3://x/a", "track/store/a"})
    CHECK_MESSAGE(!is_inside(path, "s3://track/store"), path);
}

TEST_CASE("what is inside is read as it is, and what is outside is not there") {
  io::MemoryFileSystem memory;
  check_ok(memory.make_dirs("in"));
  check_ok(memory.make_dirs("out"));
  check_ok(memory.write_file("in/a", "inside"));
  check_ok(memory.write_file("out/a", "outside"));
  ConfinedFiles files(memory, {"in"});
  CHECK(files.read_file("in/a").value() == "inside");
  CHECK(files.exists("in/b").value() == false);
  CHECK(files.exists("out/a").value() == false);
  CHECK(files.write_file("out/b", "x").error().code() == ErrorCode::kNotFound);
  CHECK(memory.exists("out/b").value() == false);
}

}  // namespace ostro::board
