// The phases of a training.
#include <fmt/format.h>

#include "ostro/experiment/plan/phases.h"
#include "ostro/lab/steps/kinds.h"
#include "ostro/run/phases/phases.h"

namespace ostro::lab {

Result<std::vector<train::TrainConfig>> training_configs(const Work& work, const std::string& folder) {
  const std::vector<Phase> phases = phases_of(work.plan, work.step);
  std::vector<train::TrainConfig> given;
  if (phases.empty()) {
    ASSIGN_OR_RETURN(given.emplace_back(), work.step.kind->name == kForkKind
                                               ? training_config(work, folder)
                                               : config_with(work, folder, nullptr));
    return given;
  }
  if (work.parameters().find("flops") != nullptr)
    return invalid_argument("flops: the number of steps follows from phases; leave out one of them");
  for (const char* path : {"trainer.num_train_steps", "optimizer.schedule_from"})
    if (work.parameters().find("set")->find(path) != nullptr)
      return invalid_argument(fmt::format("set: {} follows from the phases; leave it out", path));
  PhaseOptions so_far;
  for (const Phase& phase : phases) so_far.later.insert(phase.adds.begin(), phase.adds.end());
  for (const Phase& phase : phases) {
    for (const config::Node& option : phase.set.items)
      so_far.options.push_back({option.key, config::flow_text(option)});
    for (const std::string& name : phase.adds) so_far.later.erase(name);
    PhaseOptions now = so_far;
    now.options.push_back({"trainer.num_train_steps", std::to_string(phase.to)});
    if (phase.from > 0) now.options.push_back({"optimizer.schedule_from", std::to_string(phase.from)});
    auto config = config_with(work, folder, &now);
    if (!config.ok()) return config.error().with_context("phase " + phase.name);
    given.push_back(std::move(*config));
  }
  return run::configs_of_phases(std::move(given));
}

Result<std::optional<std::string>> make_run(const Work& work, const std::string& folder) {
  const std::vector<Phase> phases = phases_of(work.plan, work.step);
  ASSIGN_OR_RETURN(const std::vector<train::TrainConfig> configs, training_configs(work, folder));
  ASSIGN_OR_RETURN(const std::optional<int64_t> until, ends_after(work));
  RETURN_IF_ERROR(take_begun(work, folder));
  ASSIGN_OR_RETURN(const run::RunOutcome outcome,
                   run::train_phases(work.context.fs, configs, [&](size_t phase, bool amend) {
                     return work.services.train(configs[phase], amend,
                                                phases.empty() ? std::nullopt : phases[phase].workers, until);
                   }));
  const bool is_done = outcome.finished || (until && outcome.steps == *until);
  return is_done ? std::optional<std::string>(outcome.hash) : std::nullopt;
}

}  // namespace ostro::lab
