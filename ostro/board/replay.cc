#include "ostro/board/replay.h"

#include <fmt/format.h>

#include <utility>

#include "ostro/audit/cause.h"
#include "ostro/audit/sample/draw.h"
#include "ostro/audit/sampled.h"
#include "ostro/base/sha256.h"
#include "ostro/optim/optimizer.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/run_data.h"

namespace ostro::board {
namespace {

// A program that this one did not trace must take the arrays that the configuration gives.
Status check_arrays(const audit::OpenedPeriod& period, const batches::Loader& loader) {
  const train::Signatures at = train::signatures_of(period.programs);
  ASSIGN_OR_RETURN(const batches::Batch batch, loader.batch(period.period.first));
  const train::BatchArrays arrays = train::leaf_arrays(period.config, batch, period.period.first);
  const ir::Block& leaf = period.programs.leaf.body;
  const auto& places = at.leaf_params.batch;
  if (arrays.size() != places.size())
    return corrupt(fmt::format("its leaf program takes {} arrays of a batch, its configuration gives {}",
                               places.size(), arrays.size()));
  for (size_t i = 0; i < places.size(); ++i) {
    ir::Shape wanted = arrays[i].shape();
    wanted.axes.front().size = *period.config.numerics.leaf_examples;
    const ir::Shape& taken = leaf.shape(leaf.params[places[i]]);
    if (taken != wanted)
      return corrupt(fmt::format("its leaf program takes {} as {}, its configuration gives {}",
                                 period.programs.leaf.param_names[places[i]], taken.str(), wanted.str()));
  }
  const size_t scalars =
      optim::step_scalars(period.config.optimizer, period.period.first, period.config.trainer.num_train_steps)
          .size();
  if (scalars != at.update_params.scalars.size())
    return corrupt(fmt::format("its update program takes {} scalars, its configuration gives {}",
                               at.update_params.scalars.size(), scalars));
  return {};
}

// The fingerprints of the batches of all steps: cheap beside a training, so none is left out.
Status check_batches(const Context& context, const Entry& entry, const audit::RecordedRun& run,
                     const std::string& cache, Refusals& out) {
  ASSIGN_OR_RETURN(const train::DataAccess data,
                   train::open_run_data(context.fs, entry.record, run.newest(), run.chain, cache));
  std::optional<batches::Loader> loader;
  const audit::OpenedPeriod* period = nullptr;
  for (int64_t done = 0; done < run.chain.last_step(); ++done) {
    if (const audit::OpenedPeriod* now = &run.period_after(done); now != period) {
      ASSIGN_OR_RETURN(loader, train::make_loader(now->config, data.stores));
      period = now;
      if (const Status fits = check_arrays(*period, *loader); !fits.ok()) {
        if (fits.error().code() != ErrorCode::kCorrupt) return fits;
        out.push_back({Rule::kBundle, fits.error().message()});
        return {};
      }
    }
    ASSIGN_OR_RETURN(const batches::Batch batch, loader->batch(done));
    const auto& recorded = std::get<chain::StepEntry>(run.chain.find_step(done + 1)->entry).batch;
    const std::string given = batches::batch_fingerprint(batch);
    if (given == recorded) continue;
    out.push_back(
        {Rule::kBatch, fmt::format("step {} was done with the batch {}; data and configuration give {}",
                                   done + 1, recorded, given)});
    return {};
  }
  return {};
}

void refuse(const audit::VerifyReport& report, Refusals& out) {
  out.push_back(
      {Rule::kReplay,
       fmt::format("step {}: {} is {} in the chain, {} replayed{}", report.different_step, report.what,
                   report.recorded, report.replayed, report.cause.empty() ? "" : "; " + report.cause)});
}

}  // namespace

std::string draw_challenge(const std::string& entry, const std::string& head, const std::string& beacon) {
  return sha256_hex(fmt::format("ostro board 1\n{}\n{}\n{}\n", entry, head, beacon));
}

Result<Replayed> replay_entry(const Context& context, const Entry& entry, const audit::RecordedRun& run,
                              const Track& track, const ReplayRequest& request, Refusals& out) {
  const size_t before = out.size();
  RETURN_IF_ERROR(check_batches(context, entry, run, request.cache, out));
  Replayed replayed;
  replayed.steps = run.chain.last_step();
  if (out.size() > before) return replayed;
  ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Engine> engine, context.engine());
  audit::VerifyOptions options;
  options.cache = request.cache;
  audit::VerifyReport report;
  if (!track.steps || *track.steps >= replayed.steps) {
    if (request.on_step)
      options.on_step = [&](int64_t step, int64_t, int64_t last) { request.on_step(step, last); };
    ASSIGN_OR_RETURN(report, audit::verify_run(context.fs, *engine, entry.record, options, entry.models));
    replayed.replayed = report.last_step - report.start_step;
  } else {
    audit::SampleRequest sample;
    sample.count = *track.steps;
    sample.challenge = request.challenge;
    // One false step can put another state into the run: in the first one, in place of what is drawn from the
    // seed; in the last one, nothing that follows would show it.
    sample.also = {1, replayed.steps};
    sample.on_step = request.on_step;
    ASSIGN_OR_RETURN(const std::vector<int64_t> states,
                     audit::states_of(context.fs, entry.record, entry.chain));
    ASSIGN_OR_RETURN(audit::Sample done, audit::replay_sample(context.fs, *engine, entry.record, options,
                                                              sample, states, entry.models));
    report = std::move(done.report);
    replayed.replayed = done.replayed;
    replayed.drawn = done.plan.drawn;
    std::vector<int64_t> numbers = {1};
    for (const int64_t share : audit::kThousandths)
      numbers.push_back(audit::false_steps_of(replayed.steps, share));
    int64_t said = 0;  // of a short run, several shares are the same number of steps
    for (const int64_t wrong : numbers) {
      if (std::exchange(said, wrong) == wrong) continue;
      replayed.open.push_back(
          fmt::format("a run of which {} of {} steps are false is missed with a chance of {:.4f}", wrong,
                      replayed.steps, 1 - audit::chance_to_find(replayed.steps, wrong, *track.steps)));
    }
  }
  if (report.equal) return replayed;
  report.cause = audit::cause_of(context.fs, *engine, entry.record, options, report, entry.models);
  refuse(report, out);
  return replayed;
}

}  // namespace ostro::board
