#include "ostro/audit/cause.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/run_data.h"

namespace ostro::audit {
namespace {

constexpr int64_t kNear = 16;  // steps on each side whose batches are compared

// The step near `step` whose batch the record has there; 0: none.
int64_t step_of_batch(const chain::Chain& chain, const batches::Loader& loader, int64_t step,
                      const std::string& recorded) {
  for (int64_t distance = 1; distance <= kNear; ++distance)
    for (const int64_t other : {step + distance, step - distance}) {
      if (other <= chain.genesis().step()) continue;
      const auto batch = loader.batch(other - 1);
      if (batch.ok() && batches::batch_fingerprint(*batch) == recorded) return other;
    }
  return 0;
}

Result<std::string> cause_of_batch(io::FileSystem& fs, const std::string& directory,
                                   const VerifyOptions& options, const VerifyReport& report,
                                   const models::ModelChoices& models) {
  ASSIGN_OR_RETURN(const RecordedRun run, open_recorded(fs, directory, models, options.stored_programs));
  ASSIGN_OR_RETURN(const train::DataAccess data,
                   train::open_run_data(fs, directory, run.newest(), run.chain, options.cache));
  const int64_t step = report.different_step;
  ASSIGN_OR_RETURN(const batches::Loader loader,
                   train::make_loader(run.period_after(step - 1).config, data.stores));
  const int64_t other = step_of_batch(run.chain, loader, step, report.recorded);
  if (other == 0)
    return std::string("no step near it has this batch: it is of other data, or of another order of them");
  const chain::ChainLink* there = run.chain.find_step(other);
  if (there != nullptr && std::get<chain::StepEntry>(there->entry).batch == report.replayed)
    return fmt::format(
        "the record has here the batch of step {}, and there the batch of this step: the two steps "
        "were swapped",
        other);
  if (other < step) return fmt::format("this is the batch of step {}, which was taken again", other);
  return fmt::format("this is the batch of step {}: {} skipped", other,
                     other == step + 1 ? fmt::format("step {} was", step)
                                       : fmt::format("steps {} to {} were", step, other - 1));
}

// Whether the step gives the recorded state when it begins with the optimizer's arrays at zero.
bool moments_were_reset(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                        const VerifyOptions& options, const VerifyReport& report,
                        const models::ModelChoices& models) {
  const int64_t step = report.different_step;
  if (step - 1 <= 0) return false;  // there they are zero
  VerifyOptions again;
  again.from_step = step - 1;
  again.to_step = step;
  again.cache = options.cache;
  again.stored_programs = options.stored_programs;
  again.before_step = [step](train::State& state) -> Status {
    if (state.step != step - 1) return {};
    for (runtime::Buffer& array : state.optimizer) array = runtime::Buffer::zeros(array.shape());
    return {};
  };
  const auto replayed = verify_run(fs, engine, directory, again, models);
  return replayed.ok() && (replayed->equal || replayed->what == "checkpoint");
}

}  // namespace

std::string cause_of(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                     const VerifyOptions& options, const VerifyReport& report,
                     const models::ModelChoices& models) {
  if (report.what == "batch") {
    const auto cause = cause_of_batch(fs, directory, options, report, models);
    return cause.ok() ? *cause : "";
  }
  if (report.what == "loss" && report.rest_is_equal)
    return fmt::format(
        "batch, leaves and state of the step are those of the replay, so only this loss was written "
        "otherwise; `--from_step {}` replays what follows",
        report.different_step);
  if (report.what == "loss" && report.recorded != "finite")
    return "the batch is the same, so the parameters before this step, or what is computed of them, were "
           "others";
  if (report.what != "state") return "";
  if (moments_were_reset(fs, engine, directory, options, report, models))
    return fmt::format(
        "with the optimizer's arrays at zero, the step gives what is recorded: they were reset after step {}",
        report.different_step - 1);
  return "batch, loss and leaves are the same, so the update was another one: by other arrays of the "
         "optimizer, another learning rate, or another option of it than the record has";
}

}  // namespace ostro::audit
