#include "ostro/train/workers/worker.h"

#include <fmt/format.h>

#include "ostro/base/profile.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/train/workers/collective_bytes.h"

namespace ostro::train {

Result<StepResult> Worker::step(runtime::Collectives& c, const BatchArrays& batch,
                                const optim::AdamScalars& scalars, int64_t number) {
  number_ = number;
  const numerics::FpEnvGuard guard;
  pending_.reset();
  const PhasedSpan span(profiling() ? fmt::format("worker {}", rank_) : "");
  StepResult result;
  const PulseStep pulse(step_ + 1);
  ASSIGN_OR_RETURN(Buffers gradients, schedule_->gradients(c, own_.params, batch, result.leaves));
  schedule_->reset();  // before the update: it frees memory, and the update overwrites the parameters
  return update(c, std::move(gradients), scalars, std::move(result));
}

WorkerLoad Worker::load(int64_t leaves) const {
  WorkerLoad load;
  schedule_->add_load(leaves, load);
  load.owned_bytes = 3 * plan_.owned_bytes(rank_);
  const auto rank = static_cast<size_t>(rank_);
  for (const spmd::Partition* part : {&plan_.update.measure, &plan_.update.prints})
    load.sent.update += collective_bytes(part->programs[rank]->body, plan_.mesh(), rank_);
  if (!plan_.holders.empty())
    for (const size_t k : plan_.mirrored) load.sent.copies += plan_.owned_shape(k, rank_).bytes();
  return load;
}

}  // namespace ostro::train
