#include "ostro/chain/lock.h"

#include <unistd.h>

#include "ostro/chain/clock_text.h"
#include "ostro/io/files/path.h"

namespace ostro::chain {

Result<std::unique_ptr<io::FileLock>> lock_run(io::FileSystem& fs, const std::string& run_directory,
                                               int64_t epoch) {
  char host[256] = "unknown host";
  ::gethostname(host, sizeof host - 1);
  const std::string owner =
      fmt::format("process {} on {} since {} (epoch {})", ::getpid(), host, utc_now(), epoch);
  auto lock = fs.lock(io::join_path(run_directory, kLockFile), owner);
  if (!lock.ok() && lock.error().code() == ErrorCode::kBusy)
    return lock.error().with_context("another process works on this run");
  return lock;
}

}  // namespace ostro::chain
