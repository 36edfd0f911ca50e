#include "ostro/audit/record/fork.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/chain/canonical.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::audit {
namespace {

// Fixed options on which no array of a state depends: they say which batches come, and how the first weights
// were drawn, which is past.
bool only_batches_depend_on(std::string_view path) {
  return path.starts_with("data.") || path == "model.seq_len" || path == "trainer.seed";
}

// The fixed options that differ, of those that a fork may change (`may`) or of the others.
std::vector<std::string> fixed_at_forks(const train::TrainConfig& before, const train::TrainConfig& after,
                                        bool may) {
  auto fixed = fixed_differences(before, train::canonical_text(before), train::canonical_text(after));
  std::erase_if(fixed, [&](const std::string& line) {
    return only_batches_depend_on(line.substr(0, line.find(' '))) != may;
  });
  return fixed;
}

}  // namespace

const Period& period_that_made(const std::vector<Period>& periods, int64_t step) {
  size_t i = periods.size() - 1;
  while (i > 0 && periods[i].first >= step) --i;
  return periods[i];
}

Result<train::TrainConfig> fork_with(const train::TrainConfig& before, const train::TrainConfig& now,
                                     int64_t step) {
  train::TrainConfig held = before;
  if (!fixed_at_forks(before, now, true).empty()) held.data.train_weights = now.data.train_weights;
  return continue_with(held, now, step);
}

Status check_fork(const train::TrainConfig& before, const train::TrainConfig& after, int64_t step) {
  if (const auto fixed = fixed_at_forks(before, after, false); !fixed.empty())
    return invalid_argument(fmt::format("options that no fork can change: {}", fmt::join(fixed, "; ")));
  ASSIGN_OR_RETURN(const train::TrainConfig honest, fork_with(before, after, step));
  if (const auto early =
          chain::object_differences(train::canonical_text(honest), train::canonical_text(after));
      !early.empty())
    return invalid_argument(
        fmt::format("stages before step {} are others: {}", step, fmt::join(early, "; ")));
  if (after.trainer.num_train_steps > step) return {};
  return config::option_error("trainer.num_train_steps",
                              fmt::format("{} leaves nothing to do after step {}, where the fork begins; use "
                                          "{} or more",
                                          after.trainer.num_train_steps, step, step + 1));
}

Status check_parent(const chain::GenesisEntry& fork, const chain::Chain& parent, const std::string& where) {
  const chain::GenesisEntry& theirs = parent.genesis();
  const chain::ChainLink* link = parent.find_hash(fork.fork->head);
  if (link == nullptr) return corrupt(fmt::format("{} has no entry of the hash {}", where, fork.fork->head));
  const auto* named = std::get_if<chain::CheckpointEntry>(&link->entry);
  if (named == nullptr)
    return corrupt(fmt::format("{}: the entry of the hash {} names no state", where, fork.fork->head));
  if (named->step != fork.fork->step)
    return corrupt(
        fmt::format("the fork says that it goes on after step {}, but {} has this state after step {}",
                    fork.fork->step, where, named->step));
  if (!fork.initial || *fork.initial != named->name)
    return corrupt(fmt::format("the fork began with the state {}, but {} has the state {} after step {}",
                               fork.initial.value_or("(none)"), where, named->name, named->step));
  if (fork.tokenizer_hash != theirs.tokenizer_hash)
    return corrupt(fmt::format("the fork has another tokenizer than {}: hash {} here, {} there", where,
                               fork.tokenizer_hash, theirs.tokenizer_hash));
  if (fork.numerics_version != theirs.numerics_version)
    return corrupt(fmt::format("the fork has the numerics version {}, {} has {}", fork.numerics_version,
                               where, theirs.numerics_version));
  return {};
}

Status copy_ancestry(io::FileSystem& fs, const std::string& from, const std::string& head,
                     const std::string& to) {
  const std::string path = io::join_path(from, chain::kChainFile);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  const size_t entry = text.find(fmt::format("\"h\":\"{}\"", head)), end = text.find('\n', entry);
  if (entry == std::string::npos || end == std::string::npos)
    return corrupt(fmt::format("{} has no entry of the hash {}", path, head));
  RETURN_IF_ERROR(fs.remove_all(to));
  RETURN_IF_ERROR(fs.make_dirs(to));
  RETURN_IF_ERROR(
      io::write_file_atomically(fs, io::join_path(to, chain::kChainFile), text.substr(0, end + 1)));
  for (const char* folder : {kParentFolder, kMakerFolder}) {
    const std::string above = io::join_path(from, folder), file = io::join_path(above, chain::kChainFile);
    ASSIGN_OR_RETURN(const bool has, fs.exists(file));
    if (!has) continue;
    ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, file));
    RETURN_IF_ERROR(copy_ancestry(fs, above, chain.head(), io::join_path(to, folder)));
  }
  return fs.sync_dir(to);
}

}  // namespace ostro::audit
