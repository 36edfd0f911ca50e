#include "ostro/experiment/journal/file_hashes.h"

#include <nlohmann/json.hpp>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/file_hash.h"

namespace ostro::lab {

FileHashes::FileHashes(io::FileSystem& fs, std::string path, bool every_byte)
    : fs_(&fs), path_(std::move(path)) {
  if (every_byte) return;
  const auto text = fs.read_file(path_);
  if (!text.ok()) return;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object()) return;
  for (const auto& [file, entry] : json.items())
    if (entry.is_array() && entry.size() == 3 && entry[0].is_number_integer() &&
        entry[1].is_number_integer() && entry[2].is_string())
      known_[file] = {entry[0], entry[1], entry[2]};
}

Result<std::string> FileHashes::sha256(const std::string& file) {
  ASSIGN_OR_RETURN(const io::FileInfo info, fs_->stat(file));
  const auto known = known_.find(file);
  if (known != known_.end() && known->second.size == info.size && known->second.mtime_ns == info.mtime_ns)
    return known->second.sha256;
  ASSIGN_OR_RETURN(const std::string hash, io::file_sha256(*fs_, file));
  known_[file] = {info.size, info.mtime_ns, hash};
  return hash;
}

Status FileHashes::save() const {
  auto json = nlohmann::json::object();
  for (const auto& [file, k] : known_) json[file] = {k.size, k.mtime_ns, k.sha256};
  return io::write_file_atomically(
      *fs_, path_, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace ostro::lab
