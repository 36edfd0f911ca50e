#include "ostro/run/phases/phases.h"

#include <fmt/format.h>

#include <utility>

#include "ostro/audit/record/amend.h"
#include "ostro/base/log.h"
#include "ostro/chain/chain.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/io/files/path.h"

namespace ostro::run {

Result<std::vector<train::TrainConfig>> configs_of_phases(std::vector<train::TrainConfig> given) {
  for (size_t i = 1; i < given.size(); ++i) {
    const train::TrainConfig& before = given[i - 1];
    const int64_t step = before.trainer.num_train_steps;
    ASSIGN_OR_RETURN(given[i], audit::continue_with(before, std::move(given[i]), step));
    RETURN_IF_ERROR(audit::check_amend(before, given[i], step));
  }
  return given;
}

std::vector<ComingAmend> amends_of(std::span<const train::TrainConfig> configs,
                                   std::span<const std::string> programs) {
  std::vector<ComingAmend> out;
  for (size_t i = 1; i < configs.size(); ++i) {
    const int64_t step = configs[i - 1].trainer.num_train_steps;
    audit::Period before, after;
    before.config = train::canonical_text(configs[i - 1]);
    before.program_hash = programs[i - 1];
    after.config = train::canonical_text(configs[i]);
    after.program_hash = programs[i];
    out.push_back({step, audit::amend_difference(configs[i], before, after)});
  }
  return out;
}

namespace {

// The phase that goes on behind the step, by the amends that the chain has up to it.
Result<PhaseStart> phase_behind(io::FileSystem& fs, const std::string& path, int64_t step,
                                std::span<const train::TrainConfig> configs) {
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain_until(fs, path, step));
  PhaseStart out;
  for (const chain::ChainLink& link : chain.links)
    out.phase += std::holds_alternative<chain::AmendEntry>(link.entry) ? 1 : 0;
  if (out.phase >= configs.size())
    return corrupt(path + ": has more amends than the run has phases; it is another run");
  out.amend = out.phase + 1 < configs.size() && step >= configs[out.phase].trainer.num_train_steps;
  out.phase += out.amend ? 1 : 0;
  return out;
}

}  // namespace

Result<PhaseStart> phase_to_continue(io::FileSystem& fs, const std::string& directory,
                                     std::span<const train::TrainConfig> configs) {
  const std::string path = io::join_path(directory, chain::kChainFile);
  ASSIGN_OR_RETURN(const bool is_begun, fs.exists(path));
  if (!is_begun) return PhaseStart{};
  ASSIGN_OR_RETURN(const auto checkpoints, checkpoint::list_checkpoints(
                                               fs, io::join_path(directory, checkpoint::kCheckpointsFolder)));
  if (checkpoints.empty()) return PhaseStart{};
  ASSIGN_OR_RETURN(const PhaseStart first, phase_behind(fs, path, checkpoints.front().step, configs));
  for (size_t i = checkpoints.size();; --i) {
    const checkpoint::Entry& newest = checkpoints[i - 1];
    ASSIGN_OR_RETURN(const PhaseStart start, phase_behind(fs, path, newest.step, configs));
    // Within a phase the run itself passes over what is damaged.
    if (start == first) return start;
    ASSIGN_OR_RETURN(const Status damage, checkpoint::damage_of(fs, newest.path));
    if (damage.ok()) return start;
    // The session that comes must not take it: its amend is not that session's.
    ASSIGN_OR_RETURN(const std::string aside, checkpoint::set_aside(fs, newest.path));
    log_warning(fmt::format("checkpoint {} is damaged and is now {}; the run goes on from one before it: {}",
                            newest.path, aside, damage.error().message()));
  }
}

Result<RunOutcome> train_phases(io::FileSystem& fs, std::span<const train::TrainConfig> configs,
                                const std::function<Result<RunOutcome>(size_t phase, bool amend)>& train) {
  ASSIGN_OR_RETURN(PhaseStart at, phase_to_continue(fs, train::run_directory(configs[0]), configs));
  for (;; ++at.phase, at.amend = true) {
    ASSIGN_OR_RETURN(RunOutcome outcome, train(at.phase, at.amend));
    if (!outcome.finished || at.phase + 1 == configs.size()) return outcome;
  }
}

}  // namespace ostro::run
