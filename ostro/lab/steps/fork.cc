// The step fork.
#include "ostro/run/fork/fork.h"

#include <algorithm>

#include "ostro/chain/chain.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {
namespace {

Result<run::ForkRequest> request_of(const Work& work, const std::string& folder) {
  ASSIGN_OR_RETURN(const int64_t at, forked_at(work));
  return run::ForkRequest{work.made_by(work.input("of")).folder, at, folder};
}

}  // namespace

Result<int64_t> forked_at(const Work& work) {
  if (!work.plan.sanity) return std::stoll(text_of(work.step, "at"));
  ASSIGN_OR_RETURN(const chain::Chain parent,
                   chain::read_chain(work.context.fs, io::join_path(work.made_by(work.input("of")).folder,
                                                                    chain::kChainFile)));
  return parent.last_step();
}

Result<train::TrainConfig> fork_config(const Work& work, const std::string& folder) {
  ASSIGN_OR_RETURN(const run::ForkRequest request, request_of(work, folder));
  std::vector<config::Override> overrides = options_of(work);
  RETURN_IF_ERROR(check_left_to_plan(overrides));
  RETURN_IF_ERROR(set_data(work, overrides));
  io::FileSystem& fs = work.context.fs;
  ASSIGN_OR_RETURN(train::TrainConfig given,
                   run::config_of_parent(fs, request, overrides, work.context.models));
  if (work.plan.sanity) {
    // A schedule that counts from the plan's step counts from that of the sanity run.
    for (const config::Override& option : options_of(work))
      if (option.path == "optimizer.schedule_from")
        overrides.push_back({option.path, std::to_string(request.step)});
    const int64_t steps = given.trainer.num_train_steps - std::stoll(text_of(work.step, "at"));
    overrides.push_back({"trainer.num_train_steps",
                         std::to_string(request.step + std::clamp<int64_t>(steps, 1, kSanitySteps))});
    ASSIGN_OR_RETURN(given, run::config_of_parent(fs, request, overrides, work.context.models));
  }
  ASSIGN_OR_RETURN(train::TrainConfig config, run::config_of_fork(fs, request, given));
  if (!folder.empty()) {
    config.trainer.log_dir = io::parent_path(folder);
    config.trainer.id = io::base_name(folder);
  }
  return config;
}

Result<std::optional<std::string>> make_fork(const Work& work, const std::string& folder) {
  ASSIGN_OR_RETURN(const run::ForkRequest request, request_of(work, folder));
  ASSIGN_OR_RETURN(const train::TrainConfig given, fork_config(work, folder));
  ASSIGN_OR_RETURN(const run::Forked forked,
                   run::fork_run(work.context.fs, request, given, work.services.build));
  ASSIGN_OR_RETURN(const run::RunOutcome outcome, work.services.train(forked.config, false, {}, {}));
  return outcome.finished ? std::optional<std::string>(outcome.hash) : std::nullopt;
}

}  // namespace ostro::lab
