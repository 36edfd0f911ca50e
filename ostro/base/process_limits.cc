#include "ostro/base/process_limits.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace ostro {
namespace {

constexpr int64_t kGraceSeconds = 5;  // between SIGXCPU, which can be caught, and SIGKILL

Error failed(const char* what) { return io_error(fmt::format("{}: {}", what, std::strerror(errno))); }

// The version of Landlock that the kernel has; 0 or less: none.
long landlock_version() {
  return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

// All that writes to a file system. REFER and TRUNCATE came with the second and the third version.
uint64_t writing(long version) {
  constexpr uint64_t kRefer = uint64_t{1} << 13, kTruncate = uint64_t{1} << 14;
  return LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
         LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
         LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
         LANDLOCK_ACCESS_FS_MAKE_SYM | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0);
}

Status allow(int rules, const std::string& folder, uint64_t access) {
  const int fd = ::open(folder.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return failed(folder.c_str());
  landlock_path_beneath_attr below{};
  below.allowed_access = access;
  below.parent_fd = fd;
  const long done = ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0);
  const Status result = done == 0 ? Status() : Status(failed(folder.c_str()));
  ::close(fd);
  return result;
}

// The devices that a program may write to without changing anything: those that every program may need, and
// GPUs. Others can be disks, and /dev/shm has files of other programs.
std::vector<std::string> harmless_devices() {
  std::vector<std::string> out;
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"})
    out.push_back(std::string("/dev/") + name);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", ignored))
    if (entry.path().filename().string().starts_with("nvidia")) out.push_back(entry.path().string());
  std::erase_if(out, [&](const std::string& path) { return !std::filesystem::exists(path, ignored); });
  return out;
}

Status restrict_self(int rules, const std::vector<std::string>& folders, uint64_t access) {
  for (const std::string& folder : folders) RETURN_IF_ERROR(allow(rules, folder, access));
  for (const std::string& device : harmless_devices())
    RETURN_IF_ERROR(allow(rules, device, LANDLOCK_ACCESS_FS_WRITE_FILE));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("prctl");
  return ::syscall(SYS_landlock_restrict_self, rules, 0) == 0 ? Status() : Status(failed("Landlock"));
}

Status limit_writing(const std::vector<std::string>& folders) {
  const long version = landlock_version();
  if (version < 1)
    return unsupported("this kernel cannot limit what a process writes (Landlock, Linux 5.13 or later)");
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = writing(version);
  const auto rules =
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled.handled_access_fs, 0));
  if (rules < 0) return failed("Landlock");
  Status done = restrict_self(rules, folders, handled.handled_access_fs);
  ::close(rules);
  return done;
}

// The hard limit, which cannot be raised again, is `more` above the soft one.
Status limit(int which, int64_t value, int64_t more, const char* what) {
  rlimit now{};
  if (::getrlimit(which, &now) != 0) return failed(what);
  const auto most = static_cast<rlim_t>(value);
  now.rlim_max = std::min<rlim_t>(most + static_cast<rlim_t>(more), now.rlim_max);
  now.rlim_cur = std::min<rlim_t>(most, now.rlim_max);
  return ::setrlimit(which, &now) == 0 ? Status() : Status(failed(what));
}

}  // namespace

WritingLimit writing_limit() {
  constexpr long kHasTruncation = 3;
  const long version = landlock_version();
  return version < 1                ? WritingLimit::kNone
         : version < kHasTruncation ? WritingLimit::kAllButTruncation
                                    : WritingLimit::kAll;
}

Status limit_process(const ProcessLimits& limits) {
  if (limits.cpu_seconds)
    RETURN_IF_ERROR(limit(RLIMIT_CPU, *limits.cpu_seconds, kGraceSeconds, "the limit of processor time"));
  if (limits.addresses) RETURN_IF_ERROR(limit(RLIMIT_AS, *limits.addresses, 0, "the limit of addresses"));
  return limits.writable ? limit_writing(*limits.writable) : Status();
}

}  // namespace ostro
