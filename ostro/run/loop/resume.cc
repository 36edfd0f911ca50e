#include "ostro/run/loop/resume.h"

#include <fmt/format.h>

#include <memory>

#include "ostro/audit/record/witness.h"
#include "ostro/base/log.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/data_record.h"
#include "ostro/chain/version.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"
#include "ostro/train/step/run_data.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::run {
namespace {

Error other_run(const std::string& directory, const std::string& what, const std::string& hint = "") {
  return invalid_argument(
      fmt::format("{} holds a run with {}; {}give this run another trainer.id, or go back to the run's own "
                  "config, {}/config.yaml",
                  directory, what, hint, directory));
}

std::string in_words(const std::string& there, const std::string& here, const std::string& since = "") {
  return fmt::format("other options{}: {}", since, fmt::join(chain::object_differences(there, here), "; "));
}

// Whether the stores hold what the run had of these components; where one is not there, options differ.
Status check_data(io::FileSystem& fs, const std::string& directory, const std::string& config,
                  const std::string& hash, const train::DataAccess& data) {
  const Status same =
      train::check_same_data(fs, directory, chain::component_names(config), hash, *data.stores);
  return same.ok() ? same : other_run(directory, same.error().message());
}

// What no amend can change, beside options: an amend can add data, but not change what there is.
Status check_same_run(io::FileSystem& fs, const std::string& directory, const chain::GenesisEntry& genesis,
                      const train::DataAccess& data) {
  const auto other = [&](const char* what, const std::string& there, const std::string& here) {
    return other_run(directory, fmt::format("another {}: hash {} there, {} here", what, there, here));
  };
  if (genesis.numerics_version != chain::kNumericsVersion)
    return other_run(directory, fmt::format("numerics version {} (now {})", genesis.numerics_version,
                                            chain::kNumericsVersion));
  RETURN_IF_ERROR(chain::check_computable(genesis, directory));
  if (genesis.tokenizer_hash != data.tokenizer_hash)
    return other("tokenizer", genesis.tokenizer_hash, data.tokenizer_hash);
  return check_data(fs, directory, genesis.config, genesis.data_hash, data);
}

// Each manifest against the chain up to its step. A chain that is damaged before it is final; so is one whose
// amends do not follow from each other.
checkpoint::Checks chain_checks(io::FileSystem& fs, const std::string& chain_path,
                                const train::TrainConfig& given, std::optional<audit::Witness>& witness) {
  checkpoint::Checks out;
  out.manifest = [&fs, &given, &witness, chain_path](const checkpoint::Manifest& manifest,
                                                     const std::string& where) -> Result<Status> {
    ASSIGN_OR_RETURN(chain::Chain reached, chain::read_chain_until(fs, chain_path, manifest.info.step));
    ASSIGN_OR_RETURN(const std::vector<audit::Period> periods, audit::periods_of(given, reached, chain_path));
    witness.emplace(std::move(reached), chain_path, given.model.choices());
    const Result<audit::Evidence> evidence = witness->check_manifest(manifest, where);
    return evidence.ok() ? Status() : Status(evidence.error());
  };
  return out;
}

// The newest checkpoint whose manifest is fine and of this model. Its arrays are not looked at.
Status choose_checkpoint(io::FileSystem& fs, const std::string& checkpoints, const train::StateArrays& arrays,
                         const checkpoint::Checks& checks,
                         const std::shared_ptr<std::optional<audit::Witness>>& witness, Resumption& out) {
  ASSIGN_OR_RETURN(const checkpoint::Restored found,
                   checkpoint::restore_latest(fs, checkpoints, {}, /*pattern=*/"", 1, checks));
  RETURN_IF_ERROR(train::check_tensors(found.manifest, arrays, found.path));
  out.step = found.manifest.info.step;
  out.checkpoint = found.path;
  out.name = found.manifest.name;
  out.check_prints = [witness, manifest = found.manifest,
                      where = found.path](const std::vector<std::array<int64_t, 2>>& prints) {
    return (*witness)->check_prints(manifest, where, prints);
  };
  return Status();
}

// Says so when the chain has a checkpoint behind `step` that is not there. A chain that is damaged behind
// that step is no error here: it is cut off.
Status warn_of_missing(io::FileSystem& fs, const std::string& chain_path, const std::string& checkpoints,
                       int64_t step) {
  const Result<chain::Chain> chain = chain::read_chain(fs, chain_path);
  if (!chain.ok() || chain->newest_checkpoint() <= step) return {};
  const std::string newest = checkpoint::step_directory(chain->newest_checkpoint());
  ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(checkpoints, newest)));
  if (!there)
    log_warning(fmt::format("{} is missing, but {} has it; going on after step {}",
                            io::join_path(checkpoints, newest), chain_path, step));
  return {};
}

// What was given, compared with what held at the step of `out`.
Result<Resumption> compare_given(io::FileSystem& fs, const std::string& directory,
                                 const train::TrainConfig& given, const train::DataAccess& data, bool amend,
                                 Resumption out) {
  const std::string path = io::join_path(directory, chain::kChainFile);
  const int64_t step = out.step;
  ASSIGN_OR_RETURN(const chain::Chain reached, chain::read_chain_to(fs, path, step));
  out.named = reached.find_checkpoint(step) != nullptr;
  ASSIGN_OR_RETURN(const std::vector<audit::Period> periods, audit::periods_of(given, reached, path));
  out.period = periods.back();
  RETURN_IF_ERROR(check_fixed_options(directory, out.period.config, given));
  RETURN_IF_ERROR(check_data(fs, directory, out.period.config, out.period.data_hash, data));
  auto held = audit::config_of_period(given, out.period.config);
  if (!held.ok()) return held.error().with_context(path);
  out.held = std::move(*held);
  // What was given for the fork or the last amend, or what that made of it: both mean the run as it is.
  auto same = audit::continue_with(out.held, given, out.period.first);
  if (same.ok() && train::canonical_text(*same) == out.period.config) {
    out.config = std::move(*same);
    return out;
  }
  const bool begins = step == reached.genesis().step();
  if (!amend || begins) {
    const std::string since =
        periods.size() > 1 ? fmt::format(" since it was amended after step {}", out.period.first) : "";
    return other_run(directory,
                     in_words(out.period.config, train::canonical_text(same.ok() ? *same : given), since),
                     amend    ? "it has no checkpoint to amend it from; "
                     : begins ? ""
                              : fmt::format("to go on with them after step {}, add --amend; ", step));
  }
  ASSIGN_OR_RETURN(out.config, audit::continue_with(out.held, given, step));
  if (const Status allowed = audit::check_amend(out.held, out.config, step); !allowed.ok())
    return allowed.error().with_context(fmt::format("{} cannot be amended", directory));
  return out;
}

}  // namespace

Status check_fixed_options(const std::string& directory, const std::string& config,
                           const train::TrainConfig& given) {
  const auto fixed = audit::fixed_at_amends(given, config, train::canonical_text(given));
  if (fixed.empty()) return Status();
  return other_run(directory,
                   fmt::format("other options, which no amend can change: {}", fmt::join(fixed, "; ")));
}

Status check_fixed_options(io::FileSystem& fs, const train::TrainConfig& given) {
  const std::string directory = train::run_directory(given),
                    path = io::join_path(directory, chain::kChainFile);
  ASSIGN_OR_RETURN(const bool there, fs.exists(path));
  if (!there) return Status();
  const Result<chain::Chain> chain = chain::read_chain_until(fs, path, 0);
  return chain.ok() ? check_fixed_options(directory, chain->genesis().config, given) : Status();
}

Result<Resumption> plan_resume(io::FileSystem& fs, const std::string& directory,
                               const chain::GenesisEntry& genesis, const train::TrainConfig& given,
                               const train::DataAccess& data, const models::ModelFunctions& model,
                               const ResumeOptions& options) {
  const bool amend = options.amend;
  const std::string path = io::join_path(directory, chain::kChainFile);
  const std::string checkpoints = io::join_path(directory, checkpoint::kCheckpointsFolder);
  RETURN_IF_ERROR(check_same_run(fs, directory, genesis, data));
  Resumption out{genesis.step(), "", "", false, {}, given, given, {}};
  const auto witness = std::make_shared<std::optional<audit::Witness>>();
  checkpoint::Checks checks = chain_checks(fs, path, given, *witness);
  checks.before = options.before;
  const Status found =
      choose_checkpoint(fs, checkpoints, train::state_arrays(given, model), checks, witness, out);
  if (!found.ok() && found.error().code() != ErrorCode::kNotFound) {
    if (found.error().code() == ErrorCode::kInvalidArgument && genesis.config != train::canonical_text(given))
      return found.error().with_context(fmt::format("{} holds a run with {}", directory,
                                                    in_words(genesis.config, train::canonical_text(given))));
    return found.error();
  }
  RETURN_IF_ERROR(warn_of_missing(fs, path, checkpoints, out.step));
  return compare_given(fs, directory, given, data, amend, std::move(out));
}

Result<Resumption> plan_takeover(io::FileSystem& fs, const std::string& directory,
                                 const chain::GenesisEntry& genesis, const train::TrainConfig& given,
                                 const train::DataAccess& data, int64_t live) {
  RETURN_IF_ERROR(check_same_run(fs, directory, genesis, data));
  Resumption out{live, "", "", false, {}, given, given, {}};
  return compare_given(fs, directory, given, data, false, std::move(out));
}

}  // namespace ostro::run
