#include "ostro/chain/record.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "ostro/base/sha256.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::chain {
namespace {

RunRecord example() {
  RunRecord record;
  record.numerics_version = "1";
  record.program_hash = std::string(64, 'a');
  record.data_hash = std::string(64, 'b');
  record.tokenizer_hash = std::string(64, 'c');
  record.sessions.push_back(begin_session({"ostro", "train", "--config", "a \"b\".yaml"}, 0));
  return record;
}

TEST_CASE("a record is read as it was written, running or ended") {
  io::MemoryFileSystem fs;
  RunRecord record = example();
  CHECK(record.sessions[0].outcome == "running");
  CHECK(record.sessions[0].ended.empty());
  CHECK(!record.sessions[0].source_commit.empty());
  CHECK(!record.sessions[0].cpu.empty());
  std::ifstream program("/proc/self/exe", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(program)), {});
  CHECK(record.sessions[0].binary_sha256 == sha256_hex(bytes));
  CHECK(record.sessions[0].compiler.find(' ') != std::string::npos);
  check_ok(write_record(fs, kRecordFile, record));
  CHECK(*read_record(fs, kRecordFile) == record);
  end_session(record, "interrupted", 17);
  record.sessions.push_back(begin_session({}, 17));
  record.parent = "runs/other/checkpoints/step-00000100";
  record.data_hash_now = std::string(64, 'd');
  check_ok(write_record(fs, kRecordFile, record));
  const Result<RunRecord> back = read_record(fs, kRecordFile);
  REQUIRE(back.ok());
  CHECK(*back == record);
  CHECK(back->sessions[0].to_step == 17);
  CHECK(!back->sessions[0].ended.empty());
  // What cross-checks found is told once, and records without it have no such field.
  CHECK(fs.content(kRecordFile)->find("findings") == std::string::npos);
  CHECK(add_finding(record, 3, "worker 2 differs"));
  CHECK_FALSE(add_finding(record, 3, "worker 2 differs"));
  CHECK(add_finding(record, 4, "worker 2 differs"));
  CHECK(record.findings.size() == 2);
  check_ok(write_record(fs, kRecordFile, record));
  CHECK(*read_record(fs, kRecordFile) == record);
  // Records of earlier versions have no hash of the binary.
  record.sessions[0].binary_sha256.clear();
  check_ok(write_record(fs, kRecordFile, record));
  CHECK(fs.content(kRecordFile)->find("binary_sha256") == fs.content(kRecordFile)->rfind("binary_sha256"));
  CHECK(*read_record(fs, kRecordFile) == record);
}

TEST_CASE("a damaged, cut or foreign record is refused") {
  io::MemoryFileSystem fs;
  check_ok(write_record(fs, kRecordFile, example()));
  const std::string whole = *fs.read_file(kRecordFile);
  for (size_t i = 0; i < whole.size(); ++i) {
    *fs.content(kRecordFile) = whole.substr(0, i);
    CHECK(read_record(fs, kRecordFile).error().code() == ErrorCode::kCorrupt);
    *fs.content(kRecordFile) = whole;
    (*fs.content(kRecordFile))[i] ^= 4;
    const Result<RunRecord> damaged = read_record(fs, kRecordFile);
    REQUIRE(!damaged.ok());
    CHECK(damaged.error().message().find(kRecordFile) != std::string::npos);
  }
}

TEST_CASE("the times of sessions: the least beginning, and all else per step") {
  RunRecord record = example();
  CHECK(session_times(record).computing == 0);  // none has ended
  record.sessions[0].seconds = {{"start", 20}, {"compile", 4}, {"step", 30}, {"data", 3}, {"checkpoint", 7}};
  end_session(record, "interrupted", 15);
  record.sessions.push_back(begin_session({}, 15));  // killed
  record.sessions.push_back(begin_session({}, 15));
  record.sessions.back().seconds = {{"start", 1}, {"compile", 4}, {"step", 10}};
  end_session(record, "finished", 20);
  const SessionTimes times = session_times(record);
  CHECK(times.beginning == 5);
  CHECK(times.a_step == doctest::Approx(2.5));
  CHECK(times.computing == doctest::Approx(2));
}

}  // namespace
}  // namespace ostro::chain
