#include "ostro/fleet/workers/worker.h"

#include <fmt/format.h>

#include "ostro/base/watch/pulse.h"
#include "ostro/fleet/exchange/collective_bytes.h"
#include "ostro/fleet/exchange/gather_all.h"

namespace ostro::fleet {

Result<train::StepResult> Worker::step(runtime::Collectives& c, const train::BatchArrays& batch,
                                       const std::vector<float>& scalars) {
  checks_ = StepChecks();
  checks_.step = step_ + 1;
  auto done = try_step(c, batch, scalars);
  if (checks_.disagreement) {
    // The one that is named leaves, and with it the connections: first all must know who it is.
    (void)barrier(c);
  }
  return done;
}

Result<train::StepResult> Worker::try_step(runtime::Collectives& c, const train::BatchArrays& batch,
                                           const std::vector<float>& scalars) {
  pending_.reset();
  ASSIGN_OR_RETURN(own_.params, runtime::all_to(std::move(own_.params), plan_.engine->memory()));
  train::StepResult result;
  const PulseStep pulse(step_ + 1);
  ASSIGN_OR_RETURN(Buffers gradients,
                   schedule_->gradients(c, own_.params, mirror_.params, batch, result.leaves, checks_));
  own_times_.add(leaf_times().own);
  schedule_->reset();  // before the update: it frees memory, and the update overwrites the parameters
  return update(c, std::move(gradients), scalars, std::move(result));
}

train::WorkerLoad Worker::load(int64_t leaves) const {
  train::WorkerLoad load;
  schedule_->add_load(leaves, load);
  load.owned = plan_.state_bytes(rank_);
  const auto rank = static_cast<size_t>(rank_);
  if (const std::optional<int64_t> other = plan_.mirror_of(rank_)) {
    int64_t sent = 0;
    const bool far = plan_.slices.apart(rank_, plan_.holders[rank]);
    for (const size_t k : plan_.mirrored) {
      load.copies += plan_.owned_shape(k, *other).bytes();
      if (k < plan_.trained || plan_.update.joint) sent += plan_.owned_shape(k, rank_).bytes();
    }
    if (plan_.update.joint)
      add_sent(load.sent, "new cells to the worker that keeps copies",
               static_cast<int64_t>(plan_.mirrored.size()), sent, far ? sent : 0);
    else
      add_sent(load.sent, "gradients to the worker that keeps copies", plan_.mirrored_gradients(), sent,
               far ? sent : 0);
  }
  if (plan_.update.joint) {
    load.renewed = load.owned + load.copies;
    for (const int64_t receiver : barrier_receivers(plan_.mesh().size(), rank_))
      add_sent(load.sent, kWordOfNewCells, 1, 1, plan_.slices.apart(rank_, receiver) ? 1 : 0);
  }
  for (const spmd::Partition* part : {&plan_.update.measure, &plan_.update.apply, &plan_.update.report})
    add_collectives(*part->programs[rank], plan_.mesh(), plan_.slices, rank_, 1, "in the update", load.sent);
  return load;
}

}  // namespace ostro::fleet
