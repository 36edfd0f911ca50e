#include "ostro/lineage/maker.h"

#include <fmt/format.h>

#include <vector>

#include "ostro/audit/record/fork.h"
#include "ostro/audit/record/maker.h"
#include "ostro/chain/chain.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"
#include "ostro/provenance/provenance.h"

namespace ostro::lineage {
namespace {

// The run directory in a bundle that `from` means: the bundle itself, or its record, or a checkpoint of that.
Result<std::optional<std::string>> record_of_bundle(io::FileSystem& fs, const std::string& from) {
  ASSIGN_OR_RETURN(const auto bundle, audit::bundle_of(fs, from));
  if (!bundle) return std::optional<std::string>();
  const std::string record = io::join_path(*bundle, "record");
  ASSIGN_OR_RETURN(const bool has, fs.exists(io::join_path(record, chain::kChainFile)));
  return has ? std::optional(record) : std::optional<std::string>();
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
  RETURN_IF_ERROR(audit::copy_ancestry(fs, *record, head, io::join_path(run_directory, audit::kMakerFolder)));
  return audit::copy_maker_manifest(fs, *record, maker, step, run_directory);
}

}  // namespace ostro::lineage
