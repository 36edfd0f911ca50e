// The lock of a run directory: only one process may work on a run.
#pragma once

#include <memory>
#include <string>

#include "ostro/chain/record.h"
#include "ostro/io/files/file_system.h"

namespace ostro::chain {

inline constexpr const char* kLockFile = "lock";

// Takes the lock of the run directory. It is released when the returned object is destroyed or the process
// ends. The lock file says who holds it: process, host, time and `epoch`, which counts how often the run was
// started, this start included. If another process holds the lock, the error is kBusy and shows that text.
Result<std::unique_ptr<io::FileLock>> lock_run(io::FileSystem& fs, const std::string& run_directory,
                                               int64_t epoch);

// Returns true when a process of this host holds the lock file. It does not try to take the lock, because
// that could keep a run from starting.
bool is_locked_here(io::FileSystem& fs, const std::string& lock_path);

// Returns true when the text of a lock file names this host.
bool names_this_host(const std::string& lock_text);

// Returns the outcome of session `i` of a run. When the record has no outcome of it, that is "killed" if a
// later session followed; else "running" if a process of this host holds the lock of the run directory; else
// "running or killed" if the lock file names another host; else "killed".
std::string outcome_now(io::FileSystem& fs, const std::string& run_directory, const RunRecord& record,
                        size_t i);

}  // namespace ostro::chain
