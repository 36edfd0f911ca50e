#include "ostro/train/workers/worker.h"

#include <fmt/format.h>

#include "ostro/base/profile.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/spmd/run_parts.h"
#include "ostro/train/workers/collective_bytes.h"

namespace ostro::train {

using runtime::Buffer;

Result<runtime::Executable*> Worker::update_program() {
  if (update_ == nullptr) {
    const ir::Program& program = *plan_.update.programs[static_cast<size_t>(rank_)];
    ASSIGN_OR_RETURN(update_, plan_.engine->compile(program, update_options(plan_.n)));
  }
  return update_.get();
}

void Worker::adopt(const State& state) {
  const auto mine = [&](const Buffers& whole) {
    Buffers out;
    for (size_t k = 0; k < plan_.n; ++k)
      out.push_back(spmd::shard(plan_.mesh(), rank_, plan_.owned(k), whole[k]));
    return out;
  };
  adopt_cells(mine(state.params), mine(state.first_moment), mine(state.second_moment));
}

void Worker::adopt_cells(Buffers params, Buffers first_moment, Buffers second_moment) {
  p_ = std::move(params), m_ = std::move(first_moment), v_ = std::move(second_moment);
  schedule_->reset();
}

Result<StepResult> Worker::step(runtime::Collectives& c, const BatchArrays& batch,
                                const optim::AdamScalars& scalars) {
  const numerics::FpEnvGuard guard;
  const PhasedSpan span(profiling() ? fmt::format("worker {}", rank_) : "");
  StepResult result;
  ASSIGN_OR_RETURN(Buffers gradients, schedule_->gradients(c, p_, batch, result.leaves));
  schedule_->reset();  // before the update: it frees memory, and the update overwrites the parameters
  RETURN_IF_ERROR(update(c, std::move(gradients), scalars, result));
  return result;
}

Status Worker::update(runtime::Collectives& c, Buffers gradients, const optim::AdamScalars& scalars,
                      StepResult& result) {
  phase("update");
  const size_t n = plan_.n;
  ASSIGN_OR_RETURN(runtime::Executable * program, update_program());
  const auto [loss_sum, weight] = join_losses(result.leaves);
  result.weight = weight;
  Buffers inputs;
  for (Buffers* part : {&p_, &m_, &v_, &gradients}) {
    for (Buffer& b : *part) inputs.push_back(std::move(b));
    part->clear();
  }
  inputs.push_back(Buffer::scalar(ir::DType::f64, loss_sum));
  inputs.push_back(Buffer::scalar(ir::DType::f64, weight));
  for (float s : {scalars.lr, scalars.k1, scalars.k2}) inputs.push_back(Buffer::scalar(ir::DType::f32, s));
  ASSIGN_OR_RETURN(Buffers out, program->run(std::move(inputs), {&c}));
  for (size_t k = 0; k < n; ++k) {
    p_.push_back(std::move(out[k]));
    m_.push_back(std::move(out[n + k]));
    v_.push_back(std::move(out[2 * n + k]));
    result.prints.push_back(fingerprint_lanes(out[3 * n + 3 + k]));
  }
  result.loss = out[3 * n].item<float>();
  result.gradient_norm = out[3 * n + 1].item<double>();
  result.ok = out[3 * n + 2].item<uint8_t>() != 0;
  return Status();
}

WorkerLoad Worker::load(int64_t leaves) const {
  WorkerLoad load;
  schedule_->add_load(leaves, load);
  load.owned_bytes = 3 * plan_.owned_bytes(rank_);
  load.sent.update =
      collective_bytes(plan_.update.programs[static_cast<size_t>(rank_)]->body, plan_.mesh(), rank_);
  return load;
}

}  // namespace ostro::train
