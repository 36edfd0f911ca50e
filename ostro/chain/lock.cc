#include "ostro/chain/lock.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "ostro/base/host_name.h"
#include "ostro/chain/clock_text.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/s3/lock_text.h"

namespace ostro::chain {
namespace {

std::string host() {
  const std::string name = host_name();
  return name.empty() ? "unknown host" : name;
}

}  // namespace

Result<std::unique_ptr<io::FileLock>> lock_run(io::FileSystem& fs, const std::string& run_directory,
                                               int64_t epoch) {
  const std::string owner =
      fmt::format("process {} on {} since {} (epoch {})", ::getpid(), host(), utc_now(), epoch);
  auto lock = fs.lock(io::join_path(run_directory, kLockFile), owner);
  if (!lock.ok() && lock.error().code() == ErrorCode::kBusy)
    return lock.error().with_context("another process works on this run");
  return lock;
}

bool is_locked_here(io::FileSystem& fs, const std::string& lock_path) {
  if (fs.is_object_store(lock_path)) {
    const auto text = fs.read_file(lock_path);
    if (!text.ok()) return false;
    const objects::LockText lock = objects::parse_lock_text(*text);
    return !lock.free && objects::state_of_process(lock.process) == objects::HolderState::kAlive;
  }
  struct stat file{};
  if (::stat(lock_path.c_str(), &file) != 0) return false;
  const std::string inode =
      fmt::format("{:02x}:{:02x}:{}", major(file.st_dev), minor(file.st_dev), file.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, advice, access, pid, place;
    if (words >> number >> kind >> advice >> access >> pid >> place && kind == "FLOCK" && place == inode)
      return true;
  }
  return false;
}

bool names_this_host(const std::string& lock_text) {
  if (objects::parse_lock_text(lock_text).free) return true;  // no process works on it, here or elsewhere
  return lock_text.find(fmt::format(" on {} since ", host())) != std::string::npos;
}

std::string outcome_now(io::FileSystem& fs, const std::string& run_directory, const RunRecord& record,
                        size_t i) {
  const std::string& outcome = record.sessions[i].outcome;
  if (outcome != "running") return outcome;
  if (i + 1 < record.sessions.size()) return "killed";
  const std::string path = io::join_path(run_directory, kLockFile);
  if (is_locked_here(fs, path)) return "running";
  const auto lock = fs.read_file(path);
  return !lock.ok() || names_this_host(*lock) ? "killed" : "running or killed";
}

}  // namespace ostro::chain
