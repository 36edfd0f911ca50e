#include "ostro/convert/import/origin_file.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"

namespace ostro::convert {

Status take_provenance(io::FileSystem& fs, const std::string& directory, Origin& origin,
                       const std::string& below) {
  ASSIGN_OR_RETURN(const auto made, provenance::read_provenance(fs, directory));
  if (!made) return {};
  const std::string path = io::join_path(directory, provenance::kProvenanceFile);
  for (const auto& [name, hash] : origin.files) {
    const auto listed = made->files.find(below + name);
    if (listed != made->files.end() && listed->second.sha256 == hash) continue;
    return corrupt(fmt::format(
        "{} is not of these files: {} has the SHA-256 {}, it lists {}; `ostro verify {}` shows which files "
        "were changed. To import them all the same, remove {}",
        path, below + name, hash, listed == made->files.end() ? "no such file" : listed->second.sha256,
        directory, path));
  }
  ASSIGN_OR_RETURN(origin.files[provenance::kProvenanceFile], io::file_sha256(fs, path));
  origin.from = made->sources.front();
  return {};
}

Status write_origin(io::FileSystem& fs, const std::string& directory, const Origin& origin) {
  nlohmann::json json = {{"files", origin.files}, {"format", origin.format}, {"state", origin.state}};
  if (origin.from) json["from"] = nlohmann::json::parse(provenance::from_json(*origin.from));
  if (origin.layers) json["layers"] = {origin.layers->first, origin.layers->second};
  return io::write_file_atomically(fs, io::join_path(directory, checkpoint::kOriginFile), json.dump() + "\n");
}

}  // namespace ostro::convert
