#include "ostro/base/object_cache.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "ostro/base/sha256.h"
#include "ostro/base/user_cache.h"

namespace ostro {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHashDigits = 64;

Result<std::string> bytes_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || !text) return io_error(fmt::format("cannot read {}", path.string()));
  return text.str();
}

Status write_to_file(const fs::path& path, std::string_view bytes, std::ios::openmode mode) {
  std::ofstream out(path, std::ios::binary | mode);
  out << bytes;
  out.close();
  if (!out) return io_error(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  return Status();
}

}  // namespace

Result<PrivateFolder> PrivateFolder::make(const fs::path& parent, std::string_view prefix) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return io_error(fmt::format("cannot make {}: {}", parent.string(), error.message()));
  std::string name = (parent / fmt::format("{}XXXXXX", prefix)).string();
  if (::mkdtemp(name.data()) == nullptr)
    return io_error(fmt::format("cannot write in {}: {}", parent.string(), std::strerror(errno)));
  return PrivateFolder(name);
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept : path_(std::move(other.path_)) {
  other.path_.clear();
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Status write_text_file(const fs::path& path, std::string_view text) {
  return write_to_file(path, text, std::ios::trunc);
}

Status seal_object(const fs::path& object) {
  ASSIGN_OR_RETURN(const std::string bytes, bytes_of_file(object));
  return write_to_file(object, sha256_hex(bytes), std::ios::app);
}

std::optional<std::string> sealed_bytes(const fs::path& object) {
  Result<std::string> bytes = bytes_of_file(object);
  if (!bytes.ok() || bytes->size() <= kHashDigits) return std::nullopt;
  const size_t size = bytes->size() - kHashDigits;
  const std::string hash = bytes->substr(size);
  bytes->resize(size);
  if (sha256_hex(*bytes) != hash) return std::nullopt;
  return std::move(*bytes);
}

bool is_sealed(const fs::path& object) { return sealed_bytes(object).has_value(); }

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path default_cache_dir() {
  if (const std::string dir = environment_variable("OSTRO_CACHE_DIR"); !dir.empty()) return dir;
  const fs::path caches = user_cache_folder();
  return caches.empty() ? caches : caches / "ostro";
}

fs::path temporary_dir() {
  const std::string dir = environment_variable("TMPDIR");
  return dir.empty() ? "/tmp" : dir;
}

void sweep_unfinished(const fs::path& folder) {
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(24);
  std::error_code ignored, unknown;
  for (fs::directory_iterator i(folder, ignored), end; !ignored && i != end; i.increment(ignored)) {
    if (!i->path().filename().string().starts_with(kUnfinished)) continue;
    const fs::file_time_type changed = i->last_write_time(unknown);
    std::error_code failed;
    if (!unknown && changed < old) fs::remove_all(i->path(), failed);
  }
}

}  // namespace ostro
