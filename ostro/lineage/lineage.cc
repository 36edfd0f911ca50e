#include "ostro/lineage/lineage.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ostro/audit/audit_run.h"
#include "ostro/audit/record/maker.h"
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

// Runs in the same folder that began with a state that this chain names. What cannot be read, or contradicts
// the chain, is no fork of it.
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
    if (!other.ok() || !other->genesis().fork || !audit::check_parent(other->genesis(), chain, file).ok())
      continue;
    forks.push_back({other->genesis().step(), path, other->head()});
  }
  std::stable_sort(forks.begin(), forks.end(),
                   [](const KnownFork& a, const KnownFork& b) { return a.step < b.step; });
  return forks;
}

// Checks a chain that the next run names, and ends it where that run begins: the folder may have more of it.
using CutChain = std::function<Status(chain::Chain& chain, const std::string& where)>;

// A fork goes on behind the checkpoint entry that it names.
CutChain cut_at_fork(const chain::GenesisEntry& fork) {
  return [&fork](chain::Chain& chain, const std::string& where) -> Status {
    RETURN_IF_ERROR(audit::check_parent(fork, chain, where));
    chain.links.resize(static_cast<size_t>(chain.find_hash(fork.fork->head) - chain.links.data()) + 1);
    return {};
  };
}

// A published state has its name in the checkpoint entry of the step that the maker names.
CutChain cut_at_maker(const chain::Maker& maker) {
  return [&maker](chain::Chain& chain, const std::string& where) -> Status {
    RETURN_IF_ERROR(audit::check_maker(maker, chain, where));
    const int64_t step = chain::entry_step(chain.find_hash(maker.head)->entry);
    const auto end = std::find_if(chain.links.begin(), chain.links.end(), [&](const chain::ChainLink& link) {
      const auto* named = std::get_if<chain::CheckpointEntry>(&link.entry);
      return named != nullptr && named->step == step;
    });
    chain.links.erase(end + 1, chain.links.end());
    return {};
  };
}

// `directory` holds a chain. Without `cut` it is a run of its own, and other runs may lie beside it.
Result<Lineage> read_below(io::FileSystem& fs, const std::string& directory, const CutChain& cut,
                           const models::ModelChoices& models) {
  Lineage out;
  out.path = directory;
  const std::string file = io::join_path(directory, chain::kChainFile);
  ASSIGN_OR_RETURN(out.chain, chain::read_chain(fs, file));
  if (out.chain.torn_bytes > 0)
    log_warning(fmt::format("{}: its last line is unfinished and does not count", directory));
  RETURN_IF_ERROR(audit::check_claims(out.chain.genesis(), file));
  if (cut) RETURN_IF_ERROR(cut(out.chain, file));
  const chain::GenesisEntry& genesis = out.chain.genesis();
  out.length = audit::length_of(out.chain);
  out.phases = phases_of(out.chain);
  if (!cut) out.forks = forks_beside(fs, directory, out.chain);
  const auto above = [&](const char* folder, const CutChain& end,
                         std::unique_ptr<Lineage>& lineage) -> Status {
    const std::string inside = io::join_path(directory, folder);
    ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(inside, chain::kChainFile)));
    if (!there) return {};
    ASSIGN_OR_RETURN(Lineage read, read_below(fs, inside, end, models));
    lineage = std::make_unique<Lineage>(std::move(read));
    return {};
  };
  if (genesis.fork) RETURN_IF_ERROR(above(audit::kParentFolder, cut_at_fork(genesis), out.parent));
  if (out.parent) {
    const train::TrainConfig options(models);
    ASSIGN_OR_RETURN(
        const auto periods,
        audit::periods_of(options, out.parent->chain, io::join_path(out.parent->path, chain::kChainFile)));
    // Of the data only options are compared here.
    const audit::Period& made = audit::period_that_made(periods, genesis.step());
    audit::Period forked = made;
    forked.config = genesis.config, forked.program_hash = genesis.program_hash;
    out.difference = audit::amend_difference(options, made, forked);
  }
  if (genesis.maker) RETURN_IF_ERROR(above(audit::kMakerFolder, cut_at_maker(*genesis.maker), out.maker));
  return out;
}

}  // namespace

Result<Lineage> read_lineage(io::FileSystem& fs, const std::string& path,
                             const models::ModelChoices& models) {
  const std::string inside = io::join_path(path, "record");
  for (const std::string& directory : {path, inside}) {
    ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(directory, chain::kChainFile)));
    if (there) return read_below(fs, directory, {}, models);
  }
  return not_found(fmt::format("{} is no run directory, and no bundle: neither it nor {} has {}", path,
                               inside, chain::kChainFile));
}

}  // namespace ostro::lineage
