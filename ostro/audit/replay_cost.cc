// What a replay will cost, measured on parts of its steps.
#include <algorithm>
#include <map>
#include <utility>

#include "ostro/audit/verify.h"
#include "ostro/batches/packing/batch.h"
#include "ostro/fleet/workers/workers.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/fingerprints.h"

namespace ostro::audit {
namespace {

// The middle one by CPU time.
Cost middle(std::vector<Cost> costs) {
  std::sort(costs.begin(), costs.end(), [](const Cost& a, const Cost& b) { return a.cpu < b.cpu; });
  return costs[costs.size() / 2];
}

}  // namespace

// A step with one leaf and a step with two tell what a leaf costs, with the addition of its gradients, and
// what a step costs beside its leaves. Short ones are done several times. The state changes, so it is of no
// use afterwards; the numbers in it do not matter to what a step costs.
Status Replay::measure(const OpenedPeriod& period, Prices& prices) {
  constexpr int kTimes = 7;
  constexpr double kEnough = 1;  // seconds
  const CostMeter compiling;
  RETURN_IF_ERROR(use(period));
  prices.compile = compiling.spent();
  std::unique_ptr<train::StepRunner> alone;  // what several workers do together, one does
  if (options_.workers > 1) {
    ASSIGN_OR_RETURN(alone, fleet::make_runner(period.programs, engine_, "none", period.config, 1));
  }
  train::StepRunner& runner = alone != nullptr ? *alone : *runner_;
  const int64_t rows = train::leaf_rows(period.programs), step = state_.step;
  std::vector<Cost> one, two, around;
  const CostMeter all;
  for (int i = 0; i <= kTimes; ++i) {
    const CostMeter reading;
    ASSIGN_OR_RETURN(const batches::Batch batch, loader_->batch(step));
    const train::BatchArrays arrays = train::leaf_arrays(period.config, batch, step);
    batches::batch_fingerprint(batch);
    around.push_back(reading.spent());
    const auto run = [&](int64_t leaves) -> Result<Cost> {
      const CostMeter meter;
      const auto done =
          runner.run(state_, train::rows_of(arrays, 0, leaves * rows),
                     optim::step_scalars(
                         period.config.optimizer, step, period.config.trainer.num_train_steps,
                         train::losses_before(run_.chain, step, optim::common(period.config.optimizer))));
      if (!done.ok()) return done.error();
      if (done->ok()) train::step_entry(step + 1, *done, "", run_.paths, run_.shapes);
      return meter.spent();
    };
    ASSIGN_OR_RETURN(const Cost first, run(1));
    Cost second = first;
    if (batch.batch_size >= 2 * rows) {
      ASSIGN_OR_RETURN(second, run(2));
    }
    if (i == 0) continue;  // memory is taken and code is read for the first time
    one.push_back(first);
    two.push_back(second);
    if (all.spent().time > kEnough) break;
  }
  prices.leaf = middle(two) - middle(one);
  prices.leaf = {std::max(0.0, prices.leaf.cpu), std::max(0.0, prices.leaf.time)};
  prices.step = middle(around) + middle(one) - prices.leaf;
  return {};
}

Result<Cost> Replay::estimate(const SamplePlan& plan) {
  if (plan.stretches.empty()) return Cost();
  // What begins at the initial state may have more to do than what begins at a checkpoint.
  const CostMeter first_meter;
  RETURN_IF_ERROR(restore(plan.stretches.front().from));
  const Cost first = first_meter.spent();
  Cost other = first;
  if (plan.stretches.size() > 1) {
    const CostMeter meter;
    RETURN_IF_ERROR(restore(plan.stretches.back().from));
    other = meter.spent();
  }
  std::vector<const OpenedPeriod*> used;
  for (const Stretch& stretch : plan.stretches)
    for (int64_t done = stretch.from; done < stretch.to; ++done)
      if (const OpenedPeriod* period = &run_.period_after(done);
          std::find(used.begin(), used.end(), period) == used.end())
        used.push_back(period);
  std::map<const OpenedPeriod*, Prices> known;
  for (auto period = used.rbegin(); period != used.rend(); ++period)  // the first one stays compiled
    RETURN_IF_ERROR(measure(**period, known[*period]));
  Cost sum = first - other;
  const OpenedPeriod* last = period_;
  for (const Stretch& stretch : plan.stretches) {
    sum += other;
    if (options_.workers > 1) last = nullptr;
    for (int64_t done = stretch.from; done < stretch.to; ++done) {
      const OpenedPeriod* period = &run_.period_after(done);
      const Prices& prices = known[period];
      if (std::exchange(last, period) != period) sum += prices.compile;
      const int64_t leaves =
          period->config.trainer.train_batch_size.at(done) / train::leaf_rows(period->programs);
      sum += prices.step + static_cast<double>(leaves) * prices.leaf;
      if (run_.chain.find_checkpoint(done + 1) != nullptr) sum += other;  // it is named
    }
  }
  return sum;
}

}  // namespace ostro::audit
