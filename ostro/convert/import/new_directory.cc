#include "ostro/convert/import/new_directory.h"

#include <fmt/core.h>
#include <unistd.h>

#include "ostro/base/failpoint.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/only_local.h"
#include "ostro/io/files/path.h"

namespace ostro::convert {
namespace {

constexpr const char* kWorkLock = "ostro.lock";
constexpr const char* kWorkOwner = "ostro, process ";  // begins the lock's text
constexpr const char* kWorkPlace = "new";

// What shows that no killed program left the folder `work`; empty: nothing.
Result<std::string> foreign_sign(io::FileSystem& fs, const std::string& work) {
  if (io::is_link(work)) return std::string("it is a link");
  ASSIGN_OR_RETURN(const io::FileInfo info, fs.stat(work));
  if (!info.is_directory) return std::string("it is a file");
  ASSIGN_OR_RETURN(const std::vector<io::DirEntry> entries, fs.list(work));
  bool has_lock = false;
  for (const io::DirEntry& entry : entries) {
    if (entry.name == kWorkLock && !entry.is_directory)
      has_lock = true;
    else if (entry.name != kWorkPlace)
      return fmt::format("it holds {}", entry.name);
  }
  if (entries.empty()) return std::string();
  const std::string lock = io::join_path(work, kWorkLock);
  if (!has_lock || io::is_link(lock)) return fmt::format("it has no file {} of its own", kWorkLock);
  constexpr int64_t kMostLock = 256;
  const auto text = fs.read_file(lock, kMostLock);
  if (!text.ok() || (!text->empty() && !text->starts_with(kWorkOwner)))
    return fmt::format("its {} is not what Ostro writes", kWorkLock);
  return std::string();
}

Status refuse_foreign(io::FileSystem& fs, const std::string& work, const std::string& out) {
  ASSIGN_OR_RETURN(const bool there, fs.exists(work));
  if (!there && !io::is_link(work)) return {};
  ASSIGN_OR_RETURN(const std::string sign, foreign_sign(fs, work));
  if (sign.empty()) return {};
  return invalid_argument(fmt::format(
      "{}: is there already, and no interrupted command left it ({}): {} would be made in it; move "
      "it away, or name another directory with --out",
      work, sign, out));
}

}  // namespace

Status check_is_new(io::FileSystem& fs, const std::string& out) {
  ASSIGN_OR_RETURN(const bool exists, fs.exists(io::clean_path(out)));
  if (!exists) return {};
  return invalid_argument(fmt::format("--out {}: is there already; name another directory", out));
}

// The lock is made first and removed last, so a killed program leaves nothing that is not known by it.
Status make_whole(io::FileSystem& fs, const std::string& out,
                  const std::function<Status(const std::string& place)>& write, const char* suffix) {
  const std::string clean = io::clean_path(out), work = clean + suffix;
  const std::string place = io::join_path(work, kWorkPlace), lock_path = io::join_path(work, kWorkLock);
  RETURN_IF_ERROR(refuse_foreign(fs, work, clean));
  RETURN_IF_ERROR(io::only_local(fs, clean, "models and publications"));
  RETURN_IF_ERROR(fs.make_dirs(work));
  failpoint("new_directory");
  auto lock = fs.lock(lock_path, fmt::format("{}{}", kWorkOwner, ::getpid()));
  if (!lock.ok() && lock.error().code() == ErrorCode::kBusy)
    return lock.error().with_context(fmt::format("another command makes {}", clean));
  if (!lock.ok()) {
    (void)fs.remove(lock_path);  // a full disk lets it be made and not written
    (void)fs.remove(work);
    return lock.error();
  }
  Status done = check_is_new(fs, clean);  // another command may have made it since
  if (done.ok()) done = fs.remove_all(place);
  failpoint("new_directory");
  if (done.ok()) done = fs.make_dirs(place);
  if (done.ok()) done = write(place);
  failpoint("new_directory");
  if (done.ok()) done = fs.rename(place, clean);
  failpoint("new_directory");
  (void)fs.remove_all(place);
  (void)fs.remove(lock_path);
  failpoint("new_directory");
  (void)fs.remove(work);
  return done.ok() ? fs.sync_dir(io::parent_path(clean)) : done;
}

}  // namespace ostro::convert
