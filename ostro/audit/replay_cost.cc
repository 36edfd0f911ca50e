// What a replay will cost, measured on parts of its steps.
#include <algorithm>
#include <map>
#include <utility>

#include "ostro/audit/verify.h"
#include "ostro/batches/packing/batch.h"
#include "ostro/fleet/threads/workers.h"
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

std::vector<float> Replay::scalars_of(const OpenedPeriod& period, int64_t done) const {
  const optim::OptimizerOptions& optimizer = period.config.optimizer;
  return optim::step_scalars(optimizer, done, period.config.trainer.num_train_steps,
                             train::losses_before(run_.chain, done, optim::common(optimizer)));
}

// A step with one leaf and a step with two tell what a leaf costs, with the addition of its gradients, and
// what a step costs beside its leaves. Short ones are done several times. The state changes, so it is of no
// use afterwards; the numbers in it do not matter to what a step costs. `done`: a step with the most leaves.
Result<Replay::Prices> Replay::measure(const OpenedPeriod& period, int64_t done) {
  constexpr int kTimes = 7;
  constexpr double kEnough = 1;              // seconds
  std::unique_ptr<train::StepRunner> alone;  // what several workers do together, one does
  if (options_.workers > 1) {
    ASSIGN_OR_RETURN(alone, fleet::make_runner(period.programs, engine_, "none", period.config, 1));
  }
  train::StepRunner& runner = alone != nullptr ? *alone : *runner_;
  const int64_t rows = train::leaf_rows(period.programs);
  const std::vector<float> scalars = scalars_of(period, done);
  std::vector<Cost> one, two, reading;
  double leaves = 1;
  const CostMeter all;
  for (int i = 0; i <= kTimes; ++i) {
    const CostMeter meter_of_batch;
    ASSIGN_OR_RETURN(const batches::Batch batch, loader_->batch(done));
    const train::BatchArrays arrays = train::leaf_arrays(period.config, batch, done);
    batches::batch_fingerprint(batch);
    reading.push_back(meter_of_batch.spent());
    leaves = static_cast<double>(batch.batch_size) / static_cast<double>(rows);
    const auto run = [&](int64_t count) -> Result<Cost> {
      const CostMeter meter;
      const auto result = runner.run(state_, train::rows_of(arrays, 0, count * rows), scalars);
      if (!result.ok()) return result.error();
      if (result->ok()) train::step_entry(done + 1, *result, "", run_.paths, run_.shapes);
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
  Prices prices;
  prices.leaf = middle(two) - middle(one);
  prices.leaf = {std::max(0.0, prices.leaf.cpu), std::max(0.0, prices.leaf.time)};
  prices.step = middle(one) - prices.leaf;
  prices.leaf += (1 / leaves) * middle(reading);
  return prices;
}

// Steps of one kind do the same work beside their leaves: those of one configuration in which the same of the
// optimizer's scalars are zero, for a zero may leave something out (the refresh of SOAP's bases).
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
  using Kind = std::pair<const OpenedPeriod*, std::vector<bool>>;
  const auto kind_of = [&](int64_t done) {
    const OpenedPeriod* period = &run_.period_after(done);
    Kind kind{period, {}};
    for (const float scalar : scalars_of(*period, done)) kind.second.push_back(scalar == 0);
    return kind;
  };
  const auto size_of = [](const OpenedPeriod& period, int64_t done) {
    return period.config.trainer.train_batch_size.at(done);
  };
  std::map<Kind, int64_t> largest;  // the step with the most rows
  for (const Stretch& stretch : plan.stretches)
    for (int64_t done = stretch.from; done < stretch.to; ++done) {
      const Kind kind = kind_of(done);
      const auto known = largest.emplace(kind, done).first;
      if (size_of(*kind.first, done) > size_of(*kind.first, known->second)) known->second = done;
    }
  std::map<const OpenedPeriod*, Cost> compile;
  std::map<Kind, Prices> prices;
  for (auto kind = largest.rbegin(); kind != largest.rend(); ++kind) {  // the first period stays compiled
    const OpenedPeriod* period = kind->first.first;
    const CostMeter meter;
    RETURN_IF_ERROR(use(*period));
    compile.emplace(period, meter.spent());
    ASSIGN_OR_RETURN(prices[kind->first], measure(*period, kind->second));
  }
  Cost sum = first - other;
  const OpenedPeriod* last = period_;
  for (const Stretch& stretch : plan.stretches) {
    sum += other;
    if (options_.workers > 1) last = nullptr;
    for (int64_t done = stretch.from; done < stretch.to; ++done) {
      const Kind kind = kind_of(done);
      if (std::exchange(last, kind.first) != kind.first) sum += compile[kind.first];
      const int64_t leaves = size_of(*kind.first, done) / train::leaf_rows(kind.first->programs);
      sum += prices[kind].step + static_cast<double>(leaves) * prices[kind].leaf;
      if (run_.chain.find_checkpoint(done + 1) != nullptr) sum += other;  // it is named
    }
  }
  return sum;
}

}  // namespace ostro::audit
