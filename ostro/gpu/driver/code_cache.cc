#include "ostro/gpu/driver/code_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ostro/base/log.h"
#include "ostro/base/object_cache.h"
#include "ostro/base/sha256.h"

namespace ostro::gpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead = "ostro device code 1 ";
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

// Whether the file or folder belongs to this user and is closed to all others.
bool is_ours(const fs::path& path, bool folder) {
  struct stat facts{};
  if (lstat(path.c_str(), &facts) != 0) return false;
  return (folder ? S_ISDIR(facts.st_mode) : S_ISREG(facts.st_mode)) && facts.st_uid == geteuid() &&
         (facts.st_mode & kOthers) == 0;
}

}  // namespace

CodeCache::CodeCache(const fs::path& cache) {
  if (!cache.empty()) folder_ = cache / "cuda";
}

std::string CodeCache::key(const std::string& compiler, const std::string& options, const std::string& text) {
  return sha256_hex(fmt::format("{}\n{}\n{}\n{}", kHead, compiler, options, text));
}

std::optional<std::string> CodeCache::find(const std::string& key) const {
  const fs::path path = folder_ / (key + ".cubin");
  if (folder_.empty() || !is_ours(folder_, true) || !is_ours(path, false)) return std::nullopt;
  std::optional<std::string> all = sealed_bytes(path);
  const std::string head = fmt::format("{}{}\n", kHead, key);
  if (!all || !all->starts_with(head)) return std::nullopt;
  all->erase(0, head.size());
  return all;
}

void CodeCache::keep(const std::string& key, const std::string& code) {
  if (folder_.empty()) return;
  const Status written = write(key, code);
  if (!written.ok() && !told_.exchange(true))
    log_warning(fmt::format(
        "compiled device text is not kept, so every start compiles it again ({}); let OSTRO_CACHE_DIR be "
        "a folder of your own with space",
        written.error().message()));
}

Status CodeCache::write(const std::string& key, const std::string& code) const {
  std::error_code failed;
  fs::create_directories(folder_.parent_path(), failed);
  if (failed)
    return io_error(fmt::format("cannot make {}: {}", folder_.parent_path().string(), failed.message()));
  if (::mkdir(folder_.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return io_error(fmt::format("cannot make {}: {}", folder_.string(), std::strerror(errno)));
  if (!is_ours(folder_, true))
    return io_error(fmt::format("{} is open to other users, or another's: chmod 700 {}", folder_.string(),
                                folder_.string()));
  sweep_unfinished(folder_);
  ASSIGN_OR_RETURN(const PrivateFolder unfinished, PrivateFolder::make(folder_, kUnfinished));
  const fs::path file = unfinished.path() / "code";
  RETURN_IF_ERROR(write_text_file(file, fmt::format("{}{}\n{}", kHead, key, code)));
  RETURN_IF_ERROR(seal_object(file));
  if (::chmod(file.c_str(), S_IRUSR | S_IWUSR) != 0)
    return io_error(fmt::format("cannot close {}: {}", file.string(), std::strerror(errno)));
  fs::rename(file, folder_ / (key + ".cubin"), failed);
  if (failed) return io_error(fmt::format("cannot write into {}: {}", folder_.string(), failed.message()));
  return Status();
}

}  // namespace ostro::gpu
