#include "ostro/chain/origin.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/chain/canonical.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::chain {
namespace {

constexpr int64_t kMaxOriginBytes = int64_t{16} << 20;

// The hashes by file name.
Result<nlohmann::json> files_of(const std::string& origin, const std::string& where) {
  ASSIGN_OR_RETURN(const nlohmann::json json, io::parse_json(origin, where));
  const auto files = json.find("files");
  if (files == json.end() || !files->is_object())
    return corrupt(fmt::format("{}: \"files\" is no object of hashes", where));
  for (const auto& [name, hash] : files->items())
    if (!hash.is_string() || !is_lower_hex(hash.get<std::string>(), 64))
      return corrupt(fmt::format("{}: the hash of {} is {}", where, name, hash.dump()));
  return *files;
}

Status exchanged(const std::string& name, const std::string& recorded, const std::string& place,
                 const std::string& there) {
  return corrupt(
      fmt::format("the run began with a {} of SHA-256 {} (genesis), but that of {} is {}; the model was "
                  "exchanged since",
                  name, recorded, place, there));
}

}  // namespace

Result<std::optional<std::string>> read_origin(io::FileSystem& fs, const std::string& checkpoint) {
  const std::string path =
      io::join_path(io::parent_path(io::parent_path(io::clean_path(checkpoint))), checkpoint::kOriginFile);
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (!exists) return std::optional<std::string>();
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMaxOriginBytes));
  RETURN_IF_ERROR(files_of(text, path));
  ASSIGN_OR_RETURN(const nlohmann::json json, io::parse_json(text, path));
  ASSIGN_OR_RETURN(const std::string state, io::JsonFields(json, path).string("state"));
  ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, checkpoint::read_manifest(fs, checkpoint));
  if (manifest.name != state)
    return corrupt(fmt::format("{} is of the state {}, but {} holds the state {}; import the model again",
                               path, state, checkpoint, manifest.name));
  ASSIGN_OR_RETURN(const std::string canonical, canonical_object(text));
  return std::optional(canonical);
}

Status check_origin(io::FileSystem& fs, const std::string& origin, const std::string& from) {
  ASSIGN_OR_RETURN(const nlohmann::json recorded, files_of(origin, "the genesis's origin"));
  if (const auto found = checkpoint::find_checkpoints(fs, from); found.ok()) {
    ASSIGN_OR_RETURN(const auto now, read_origin(fs, found->front()));
    if (!now) return {};
    ASSIGN_OR_RETURN(const nlohmann::json there, files_of(*now, from));
    for (const auto& [name, hash] : recorded.items())
      if (!there.contains(name) || there[name] != hash)
        return exchanged(name, hash.get<std::string>(), io::join_path(from, checkpoint::kOriginFile),
                         there.contains(name) ? there[name].get<std::string>() : "missing");
    return {};
  }
  for (const auto& [name, hash] : recorded.items()) {
    const std::string path = io::join_path(from, name);
    ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
    if (!exists) continue;
    ASSIGN_OR_RETURN(const std::string now, io::file_sha256(fs, path));
    if (hash != now) return exchanged(name, hash.get<std::string>(), path, now);
  }
  return {};
}

}  // namespace ostro::chain
