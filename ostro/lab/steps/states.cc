// The states of a run that steps take: the last one, that of a step, or all that it keeps.
#include <fmt/format.h>

#include "ostro/chain/chain.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"
#include "ostro/run/fork/missing_state.h"

namespace ostro::lab {
namespace {

Result<chain::Chain> chain_of(const Work& work) {
  return chain::read_chain(work.context.fs,
                           io::join_path(work.made_by(work.input("of")).folder, chain::kChainFile));
}

}  // namespace

Result<std::vector<KeptState>> kept_states(const Work& work) {
  const std::string& run = work.made_by(work.input("of")).folder;
  ASSIGN_OR_RETURN(const chain::Chain chain, chain_of(work));
  std::vector<KeptState> out;
  for (const chain::ChainLink& link : chain.links)
    if (const auto* entry = std::get_if<chain::CheckpointEntry>(&link.entry))
      out.push_back({entry->step, entry->name,
                     io::join_path(io::join_path(run, checkpoint::kCheckpointsFolder),
                                   checkpoint::step_directory(entry->step))});
  if (out.empty())
    return not_found(fmt::format("{}: its chain names no checkpoint, so there is no state to take", run));
  return out;
}

Result<KeptState> state_at(const Work& work) {
  ASSIGN_OR_RETURN(const std::vector<KeptState> states, kept_states(work));
  const config::Node* at = work.step.parameters.find("at");
  if (at == nullptr || work.plan.sanity) return states.back();
  const int64_t step = std::stoll(at->text);
  for (const KeptState& state : states)
    if (state.step == step) return state;
  ASSIGN_OR_RETURN(const chain::Chain chain, chain_of(work));
  return run::missing_state(work.context.fs, work.made_by(work.input("of")).folder, chain, step, "at");
}

Result<Context> context_of_run(const Work& work) {
  const Step& training = work.input("of");
  ASSIGN_OR_RETURN(const train::TrainConfig config,
                   training_config(work.of(training), work.made_by(training).folder));
  return work.context.on(config.trainer.device);
}

}  // namespace ostro::lab
