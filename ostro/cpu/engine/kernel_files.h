// The files of compiled kernels: private folders to compile in, and objects kept under their keys.
//
// Processes, users and hosts may share a cache: what is not finished lies in a folder with a name that nobody
// else has, and an object is moved to its key when it is whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::cpu {

// A folder that this object made and nobody else can open (mode 0700); removed with all that is in it.
class PrivateFolder {
 public:
  // In `parent`, which is made when it is missing; a name of `prefix` and random letters that was free.
  static Result<PrivateFolder> make(const std::filesystem::path& parent, std::string_view prefix);
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit PrivateFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

// Error: whatever kept any byte from being written.
Status write_kernel_file(const std::filesystem::path& path, std::string_view text);

// Puts the hash of the object's bytes behind them: damage shows before the loader maps it.
Status seal_object(const std::filesystem::path& object);
bool is_sealed(const std::filesystem::path& object);

// Its value; empty when it is not set.
std::string environment_variable(const char* name);
// The folder of all caches of Ostro, by the environment; empty without one.
std::filesystem::path default_cache_dir();
// TMPDIR, or /tmp.
std::filesystem::path temporary_dir();

// What the private folders of the cache are called; those of processes that were killed stay behind.
inline constexpr std::string_view kUnfinished = "tmp-";
// Removes unfinished work that is older than a day. Never fails.
void sweep_unfinished(const std::filesystem::path& folder);

}  // namespace ostro::cpu
