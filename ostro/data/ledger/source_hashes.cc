#include "ostro/data/ledger/source_hashes.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ostro/base/log.h"
#include "ostro/data/ledger/ledger_json.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::data {
namespace {

constexpr const char* kFormat = "ostro source hashes 1";
constexpr int64_t kSaidFrom = int64_t{1} << 30;  // bytes; some seconds

}  // namespace

void SourceHashes::load() {
  loaded_ = true;
  const auto text = fs_.read_file(io::join_path(cache_dir_, kSourceHashesFile));
  if (!text.ok()) return;
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const io::JsonFields fields(json, kSourceHashesFile);
  const auto format = fields.string("format");
  const auto files = fields.get("files");
  if (!format.ok() || *format != kFormat || !files.ok() || !(*files)->is_array()) return;
  for (const Json& item : **files) {
    const io::JsonFields file(item, kSourceHashesFile);
    const auto path = file.string("path"), sha256 = file.string("sha256");
    const auto size = file.integer("size", 0, INT64_MAX),
               mtime = file.integer("mtime_ns", INT64_MIN, INT64_MAX);
    if (path.ok() && sha256.ok() && size.ok() && mtime.ok()) kept_[*path] = {*size, *mtime, *sha256};
  }
}

Result<std::string> SourceHashes::of(const SourceFile& source) {
  if (!loaded_) load();
  if (const auto known = kept_.find(source.path); known != kept_.end() && known->second.size == source.size &&
                                                  known->second.mtime_ns == source.mtime_ns) {
    asked_[source.path] = known->second;
    return known->second.sha256;
  }
  ASSIGN_OR_RETURN(std::string hash, io::file_sha256(fs_, source.path));
  asked_[source.path] = {source.size, source.mtime_ns, hash};
  const bool said = bytes_read_ >= kSaidFrom;
  bytes_read_ += source.size;
  if (!said && bytes_read_ >= kSaidFrom) {
    log_info(
        fmt::format("{}: reading texts to compare them, as their times or places are others than when "
                    "the token store was built; it is done once",
                    cache_dir_));
  }
  return hash;
}

void SourceHashes::keep() const {
  if (bytes_read_ == 0) return;
  Json files = Json::array();
  for (const auto& [path, file] : asked_)
    files.push_back(
        {{"path", path}, {"size", file.size}, {"mtime_ns", file.mtime_ns}, {"sha256", file.sha256}});
  const Json json = {{"format", kFormat}, {"files", std::move(files)}};
  (void)io::write_file_atomically(fs_, io::join_path(cache_dir_, kSourceHashesFile), canonical(json) + "\n")
      .ok();
}

}  // namespace ostro::data
