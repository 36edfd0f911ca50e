#include "ostro/lab/drive/lab_lock.h"

#include <fmt/format.h>
#include <unistd.h>

#include "ostro/base/host_name.h"
#include "ostro/io/files/only_local.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {

Result<std::unique_ptr<io::FileLock>> lock_lab(io::FileSystem& fs, const Plan& plan) {
  RETURN_IF_ERROR(io::only_local(fs, plan.directory(), "labs"));
  RETURN_IF_ERROR(fs.make_dirs(plan.directory()));
  auto lock = fs.lock(io::join_path(plan.directory(), "lock"),
                      fmt::format("process {} of {}", ::getpid(), host_name()));
  if (!lock.ok() && lock.error().code() == ErrorCode::kBusy)
    return lock.error().with_context(
        "another process works on this lab: wait until it has ended, or stop it, and run this again");
  return lock;
}

}  // namespace ostro::lab
