// run.json: what a run is and where and when it ran (docs/formats/run_directory.md). For people and tools;
// the identity of a run is its chain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"

namespace ostro::train {

inline constexpr const char* kRecordFile = "run.json";
inline constexpr int64_t kRecordFormat = 1;

// One start of the command.
struct Session {
  std::vector<std::string> argv;
  std::string directory;      // it was started in, absolute; what relative paths are seen from
  std::string source_commit;  // with "-dirty" when files had been changed; "unknown" outside a repository
  std::string compiler;       // "gcc 12.2.0"
  std::string cpu;            // the model's name
  std::string started;        // UTC, as utc_now() gives it
  std::string ended;          // empty while it runs, and for ever when it was killed
  std::string outcome;        // "running", "finished", "interrupted", "failed: ..."
  int64_t from_step = 0;      // steps done when it began and, when it ended, at the end
  int64_t to_step = 0;
  bool operator==(const Session&) const = default;
};

struct RunRecord {
  std::string numerics_version;
  std::string program_hash;
  std::string data_hash;
  std::string tokenizer_hash;
  std::string parent;  // the checkpoint that the run began from; empty: none
  std::vector<Session> sessions;
  bool operator==(const RunRecord&) const = default;
};

// A session of this build on this machine, beginning now.
Session begin_session(std::vector<std::string> argv, int64_t from_step);
// The last session ends now.
void end_session(RunRecord& record, const std::string& outcome, int64_t to_step);

// The record as a JSON object: the file without its checksum.
std::string record_json(const RunRecord& record);
// Replaces the file atomically.
Status write_record(io::FileSystem& fs, const std::string& path, const RunRecord& record);
// ErrorCode::kCorrupt names the field; a later format is kUnsupported.
Result<RunRecord> read_record(io::FileSystem& fs, const std::string& path);

// What the program was built from and with: the commit and the compiler, as in Session.
std::string source_commit();
std::string compiler_name();

}  // namespace ostro::train
