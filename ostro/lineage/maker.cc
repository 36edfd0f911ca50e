#include "ostro/lineage/maker.h"

#include <fmt/format.h>

#include <vector>

#include "ostro/audit/record/fork.h"
#include "ostro/chain/chain.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"
#include "ostro/provenance/provenance.h"

namespace ostro::lineage {
namespace {

constexpr const char* kBundleFile = "bundle.json";
constexpr const char* kRecordFolder = "record";

// The run directory in a bundle that `from` means: the bundle itself, or its record, or a checkpoint of that.
Result<std::optional<std::string>> record_of_bundle(io::FileSystem& fs, const std::string& from) {
  const std::string place = io::absolute_path(from);
  for (std::string above = place; above != io::parent_path(above); above = io::parent_path(above)) {
    ASSIGN_OR_RETURN(const bool is_bundle, fs.exists(io::join_path(above, kBundleFile)));
    if (!is_bundle) continue;
    const std::string record = io::join_path(above, kRecordFolder);
    ASSIGN_OR_RETURN(const bool has, fs.exists(io::join_path(record, chain::kChainFile)));
    if (has && (place == above || place == record || place.starts_with(record + "/")))
      return std::optional(record);
  }
  return std::optional<std::string>();
}

}  // namespace

Result<std::optional<chain::Maker>> maker_of(io::FileSystem& fs, const std::string& from,
                                             const std::optional<std::string>& origin) {
  if (origin) {
    ASSIGN_OR_RETURN(const auto source, provenance::made_from(*origin, from));
    if (source && source->head) return std::optional(chain::Maker{*source->head, source->state});
    return std::optional<chain::Maker>();
  }
  ASSIGN_OR_RETURN(const auto record, record_of_bundle(fs, from));
  if (!record) return std::optional<chain::Maker>();
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, checkpoint::find_checkpoints(fs, from));
  ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, checkpoint::read_manifest(fs, paths.front()));
  return std::optional(chain::Maker{manifest.info.chain_head, manifest.name});
}

Status copy_maker(io::FileSystem& fs, const std::string& from, const chain::Maker& maker,
                  const std::string& run_directory) {
  ASSIGN_OR_RETURN(const auto record, record_of_bundle(fs, from));
  if (!record) return {};
  const std::string path = io::join_path(*record, chain::kChainFile);
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, path));
  RETURN_IF_ERROR(audit::check_maker(maker, chain, path));
  const int64_t step = chain::entry_step(chain.find_hash(maker.head)->entry);
  std::string head;  // of the entry that names the state
  for (const chain::ChainLink& link : chain.links)
    if (std::holds_alternative<chain::CheckpointEntry>(link.entry) && chain::entry_step(link.entry) == step)
      head = link.hash;
  return audit::copy_ancestry(fs, *record, head, io::join_path(run_directory, audit::kMakerFolder));
}

}  // namespace ostro::lineage
