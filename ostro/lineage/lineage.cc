#include "ostro/lineage/lineage.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/audit/audit_run.h"
#include "ostro/base/log.h"
#include "ostro/io/files/path.h"

namespace ostro::lineage {
namespace {

std::vector<Phase> phases_of(const chain::Chain& chain) {
  std::vector<Phase> phases(1);
  phases[0].first = phases[0].last = chain.genesis().step();
  for (const chain::ChainLink& link : chain.links) {
    Phase& now = phases.back();
    if (const auto* step = std::get_if<chain::StepEntry>(&link.entry)) {
      if (now.last == now.first) now.first_loss = step->loss;
      now.last = step->step;
      now.last_loss = step->loss;
      now.tokens += step->tokens;
    } else if (const auto* checkpoint = std::get_if<chain::CheckpointEntry>(&link.entry)) {
      now.checkpoints.push_back(*checkpoint);
    } else if (const auto* amend = std::get_if<chain::AmendEntry>(&link.entry)) {
      Phase next;
      next.first = next.last = amend->step;
      next.difference = amend->difference;
      phases.push_back(std::move(next));
    }
  }
  return phases;
}

// Runs in the same folder whose genesis names an entry of this chain. What cannot be read is no fork of it.
std::vector<KnownFork> forks_beside(io::FileSystem& fs, const std::string& run, const chain::Chain& chain) {
  std::vector<KnownFork> forks;
  const std::string folder = io::parent_path(io::clean_path(run));
  const auto entries = fs.list(folder);
  if (!entries.ok()) return forks;
  for (const io::DirEntry& entry : *entries) {
    const std::string path = io::join_path(folder, entry.name), file = io::join_path(path, chain::kChainFile);
    if (!entry.is_directory) continue;
    const auto there = fs.exists(file);
    if (!there.ok() || !*there) continue;
    const auto other = chain::read_chain(fs, file);
    if (!other.ok() || !other->genesis().fork || chain.find_hash(other->genesis().fork->head) == nullptr)
      continue;
    forks.push_back({other->genesis().step(), path, other->head()});
  }
  std::stable_sort(forks.begin(), forks.end(),
                   [](const KnownFork& a, const KnownFork& b) { return a.step < b.step; });
  return forks;
}

// `directory` holds a chain; `is_run`: it is a run of its own, and other runs may lie beside it.
Result<Lineage> read_below(io::FileSystem& fs, const std::string& directory, bool is_run,
                           const models::ModelChoices& models) {
  Lineage out;
  out.path = directory;
  ASSIGN_OR_RETURN(out.chain, chain::read_chain(fs, io::join_path(directory, chain::kChainFile)));
  if (out.chain.torn_bytes > 0)
    log_warning(fmt::format("{}: its last line is unfinished and does not count", directory));
  const chain::GenesisEntry& genesis = out.chain.genesis();
  out.length = audit::length_of(out.chain);
  out.phases = phases_of(out.chain);
  if (is_run) out.forks = forks_beside(fs, directory, out.chain);
  const auto above = [&](const char* folder, std::unique_ptr<Lineage>& lineage) -> Status {
    const std::string inside = io::join_path(directory, folder);
    ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(inside, chain::kChainFile)));
    if (!there) return {};
    ASSIGN_OR_RETURN(Lineage read, read_below(fs, inside, false, models));
    lineage = std::make_unique<Lineage>(std::move(read));
    return {};
  };
  if (genesis.fork) {
    RETURN_IF_ERROR(above(audit::kParentFolder, out.parent));
    if (out.parent) {
      const std::string where = io::join_path(out.parent->path, chain::kChainFile);
      RETURN_IF_ERROR(audit::check_parent(genesis, out.parent->chain, where));
      const train::TrainConfig options(models);
      ASSIGN_OR_RETURN(const auto periods, audit::periods_of(options, out.parent->chain, where));
      out.difference = audit::amend_difference(options, audit::period_that_made(periods, genesis.step()),
                                               {genesis.step(), genesis.config, genesis.program_hash});
    }
  }
  if (genesis.maker) {
    RETURN_IF_ERROR(above(audit::kMakerFolder, out.maker));
    if (out.maker)
      RETURN_IF_ERROR(audit::check_maker(*genesis.maker, out.maker->chain,
                                         io::join_path(out.maker->path, chain::kChainFile)));
  }
  return out;
}

}  // namespace

Result<Lineage> read_lineage(io::FileSystem& fs, const std::string& path,
                             const models::ModelChoices& models) {
  const std::string inside = io::join_path(path, "record");
  for (const std::string& directory : {path, inside}) {
    ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(directory, chain::kChainFile)));
    if (there) return read_below(fs, directory, true, models);
  }
  return not_found(fmt::format("{} is no run directory, and no bundle: neither it nor {} has {}", path,
                               inside, chain::kChainFile));
}

}  // namespace ostro::lineage
