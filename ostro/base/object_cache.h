// The object cache: files that a compiler makes of generated code, kept under their keys, and private folders
// to compile in. Engines compile their kernels into it.
//
// Processes, users and hosts may share a cache. Unfinished files are in a folder whose name no other process
// uses; a finished object is moved to the name that is its key.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro {

// A folder that this object made and no other user can open (mode 0700); removed with all that is in it.
class PrivateFolder {
 public:
  // Makes it in `parent`, which is created when it is missing. Its name is `prefix` and random letters.
  static Result<PrivateFolder> make(const std::filesystem::path& parent, std::string_view prefix);
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit PrivateFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

// Writes a file. Error: kIo when not every byte could be written.
Status write_text_file(const std::filesystem::path& path, std::string_view text);

// Appends the hash of its bytes to an object, so that damage is found before the loader maps the file.
Status seal_object(const std::filesystem::path& object);
// The object's bytes without the hash; nothing when it is damaged or not there.
std::optional<std::string> sealed_bytes(const std::filesystem::path& object);
// Returns true when the file is there and has the hash of its bytes.
bool is_sealed(const std::filesystem::path& object);

// The value of the variable; empty when it is not set.
std::string environment_variable(const char* name);
// The cache folder of Ostro, from the environment variables; empty when they name none.
std::filesystem::path default_cache_dir();
// The folder that TMPDIR names, or /tmp.
std::filesystem::path temporary_dir();

// The names of the cache's private folders begin with this. Killed processes leave such folders behind.
inline constexpr std::string_view kUnfinished = "tmp-";
// Removes unfinished work that is older than a day. Never fails.
void sweep_unfinished(const std::filesystem::path& folder);

}  // namespace ostro
