// run.json: what a run is, and where and when it ran (docs/reference/formats/run_directory.md). People and
// tools read it. It does not identify the run; the chain does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"

namespace ostro::chain {

inline constexpr const char* kRecordFile = "run.json";
inline constexpr int64_t kRecordFormat = 1;
// The outcome of a session that ended at the step at which a lab wanted it to end, before the run's last one.
inline constexpr const char* kEndedAsAsked = "ended as asked";

// One start of the training command. The functions that read or write files return their errors with the
// path; all functions but end_session are thread-safe.
struct Session {
  std::vector<std::string> argv;
  std::string directory;  // absolute path of the working directory; relative paths in the config start here
  // git commit, with "-dirty" if files were changed; "unknown" outside a repository
  std::string source_commit;
  // SHA-256 of the file that the process runs; empty if it could not be read, and in older records
  std::string binary_sha256;
  std::string compiler;   // "gcc 12.2.0"
  std::string cpu;        // model name of the CPU, its cores, memory, and best instruction set
  std::string started;    // UTC, as utc_now() gives it
  std::string ended;      // empty while it runs; stays empty if the process was killed
  std::string outcome;    // "running", "finished", "interrupted", kEndedAsAsked, "failed: ..."
  int64_t from_step = 0;  // steps done at the start of the session
  int64_t to_step = 0;    // steps done at its end
  // The seconds of each use of its time ("step", "data", ...: kTimeUseNames in base/watch/time_use.h); empty
  // while it runs.
  std::map<std::string, double> seconds;
  bool operator==(const Session&) const = default;
};

// What workers that compared their results found (trainer.cross_check). The step was done again without what
// was wrong, so the chain does not have it.
struct CrossCheckFinding {
  int64_t step = 0;
  std::string time;  // UTC, as utc_now() gives it
  std::string text;  // who differs, in what
  bool operator==(const CrossCheckFinding&) const = default;
};

// The content of run.json. The hashes are those of the chain's genesis but for data_hash_now.
struct RunRecord {
  std::string numerics_version;
  std::string program_hash;
  std::string data_hash;
  std::string data_hash_now;  // since the last amend that added data; empty: no amend did
  std::string tokenizer_hash;
  std::string parent;  // the checkpoint that the run started from; empty: none
  std::vector<Session> sessions;
  std::vector<CrossCheckFinding> findings;
  bool operator==(const RunRecord&) const = default;
};

// A new session that starts now, with the commit, binary, compiler and CPU of this process.
Session begin_session(std::vector<std::string> argv, int64_t from_step);
// Marks the last session as ended now. There must be one.
void end_session(RunRecord& record, const std::string& outcome, int64_t to_step);

// Adds a finding of now, unless the record has it. Returns whether it was added.
bool add_finding(RunRecord& record, int64_t step, const std::string& text);

// The record as a JSON object. This is the file's content without its checksum.
std::string record_json(const RunRecord& record);
// The seconds that a step took on average in the sessions that ended. All uses of their time count, also
// those beside steps. 0: not known.
double seconds_a_step(const RunRecord& record);

// What the sessions that ended took, in seconds.
struct SessionTimes {
  double beginning = 0;  // of a session, until it trains: the start and compiling; the least of them
  double a_step = 0;     // all uses of a session's time but its beginning, per step
  double computing = 0;  // of a_step, the step alone
};
// Zeros: not known.
SessionTimes session_times(const RunRecord& record);
// Replaces the file atomically. Errors: those of writing.
Status write_record(io::FileSystem& fs, const std::string& path, const RunRecord& record);
// Reads the file. Errors: kCorrupt for a wrong checksum or field, kUnsupported for a later format, and those
// of reading.
Result<RunRecord> read_record(io::FileSystem& fs, const std::string& path);

// The commit that this program was built from, the hash of its file, and its compiler, as in Session.
std::string source_commit();
std::string binary_sha256();
std::string compiler_name();

}  // namespace ostro::chain
