// The second half of a worker's step: from the gradients of its cells to the new cells. Until the gradient
// norm is known nothing is changed, and from then on no other worker is needed. So when one of them is lost,
// the others are all before or all behind a step once they have told each other the norm. Where the update is
// joint, the new cells are made beside the old ones, and take their place when all workers have theirs.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/base/profile.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/fleet/workers/messages.h"
#include "ostro/fleet/workers/worker.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::fleet {
namespace {

using runtime::Buffer;
using Arrays = std::vector<Buffer>;

const ir::Program& program_of(const spmd::Partition& partition, int64_t rank) {
  return *partition.programs[static_cast<size_t>(rank)];
}

}  // namespace

Status Worker::compile_once(std::unique_ptr<runtime::Executable>& slot, const ir::Program& program,
                            const runtime::CompileOptions& options) {
  if (slot != nullptr) return Status();
  ASSIGN_OR_RETURN(slot, plan_.engine->compile(program, options));
  return Status();
}

Result<runtime::Executable*> Worker::apply_program() {
  const auto options = plan_.update.joint ? runtime::CompileOptions()
                                          : train::update_options(plan_.arrays.size() + plan_.trained);
  RETURN_IF_ERROR(compile_once(apply_, program_of(plan_.update.apply, rank_), options));
  return apply_.get();
}

Status Worker::compile() {
  RETURN_IF_ERROR(leaf_program());
  RETURN_IF_ERROR(apply_program());
  RETURN_IF_ERROR(compile_once(measure_, program_of(plan_.update.measure, rank_), {}));
  RETURN_IF_ERROR(compile_once(prints_, program_of(plan_.update.prints, rank_), {}));
  if (const int64_t other = plan_.kept_for(rank_); other >= 0 && !plan_.update.joint)
    if (apply_kept_ == nullptr) {
      ASSIGN_OR_RETURN(const ir::Program program, mirrored_apply(plan_, other));
      const auto gradients = static_cast<size_t>(plan_.mirrored_gradients());
      RETURN_IF_ERROR(
          compile_once(apply_kept_, program, train::update_options(plan_.mirrored.size() + gradients)));
    }
  return Status();
}

Status Worker::adopt(const train::State& state) {
  const auto take = [&](int64_t rank, size_t k, Cells& cells) -> Status {
    ASSIGN_OR_RETURN(const Buffer whole, train::array_of(state, k).to_host());
    train::list_of(cells, k, plan_.n).push_back(spmd::shard(plan_.mesh(), rank, plan_.owned(k), whole));
    return Status();
  };
  Cells own, kept;
  for (size_t k = 0; k < plan_.arrays.size(); ++k) RETURN_IF_ERROR(take(rank_, k, own));
  if (const int64_t other = plan_.kept_for(rank_); other >= 0)
    for (const size_t k : plan_.mirrored) RETURN_IF_ERROR(take(other, k, kept));
  adopt_cells(std::move(own), std::move(kept), state.step);
  return Status();
}

void Worker::adopt_cells(Cells own, Cells kept, int64_t step, train::StepResult last) {
  last_ = std::move(last);
  own_ = std::move(own), kept_ = std::move(kept);
  step_ = step;
  pending_.reset();
  schedule_->reset();
}

Result<Cells> Worker::fetch_copies(runtime::Collectives& c, const Cells& own) const {
  Cells copies;
  ASSIGN_OR_RETURN(copies.params, mirror(c, own.params));
  ASSIGN_OR_RETURN(copies.kept, mirror(c, own.kept, plan_.n));
  return copies;
}

Result<train::StepResult> Worker::update(runtime::Collectives& c, Buffers gradients,
                                         const std::vector<float>& scalars, train::StepResult result) {
  phase("update");
  Pending pending{std::move(gradients), {}, scalars, std::move(result), 0};
  std::tie(pending.loss_sum, pending.result.weight) = train::join_losses(pending.result.leaves);
  pending.result.measures = train::join_measures(pending.result.leaves);
  if (!plan_.update.joint) {
    ASSIGN_OR_RETURN(pending.kept, mirror(c, pending.own));
  }
  pending_ = std::move(pending);
  fault_point("update", step_ + 1, rank_);
  ASSIGN_OR_RETURN(const Measured measured, measure(c));
  if (plan_.update.joint) RETURN_IF_ERROR(renew(c, measured));
  fault_point("commit", step_ + 1, rank_);
  RETURN_IF_ERROR(finish_with(measured));
  fault_point("gather", step_, rank_);
  RETURN_IF_ERROR(look(c, last_));
  return last_;
}

// The owner of cells sends them to the holder of the copies.
Result<Worker::Buffers> Worker::mirror(runtime::Collectives& c, const Buffers& owned, size_t first) const {
  Buffers kept;
  const int64_t other = plan_.kept_for(rank_);
  if (other < 0) return kept;
  const int64_t holder = plan_.holders[static_cast<size_t>(rank_)];
  for (const size_t k : plan_.mirrored) {
    if (k < first || k >= first + owned.size()) continue;
    ASSIGN_OR_RETURN(const Buffer mine, owned[k - first].to_host());
    kept.push_back(Buffer::empty(plan_.owned_shape(k, other)));
    RETURN_IF_ERROR(send_and_receive(c, holder, mine.bytes(), other, kept.back().mutable_bytes()));
  }
  return kept;
}

Result<Measured> Worker::measure(runtime::Collectives& c) {
  Buffers inputs = pending_->own;
  inputs.push_back(Buffer::scalar(ir::DType::f64, pending_->loss_sum));
  inputs.push_back(Buffer::scalar(ir::DType::f64, pending_->result.weight));
  RETURN_IF_ERROR(compile());
  ASSIGN_OR_RETURN(const Buffers out, measure_->run(std::move(inputs), {&c}));
  Measured measured;
  ASSIGN_OR_RETURN(measured.loss, out[0].scalar<float>());
  ASSIGN_OR_RETURN(measured.gradient_norm, out[1].scalar<double>());
  ASSIGN_OR_RETURN(const auto ok, out[2].scalar<uint8_t>());
  measured.ok = ok != 0;
  for (size_t i = 3; i < out.size(); ++i) {
    ASSIGN_OR_RETURN(measured.group_norms.emplace_back(), out[i].scalar<double>());
  }
  return measured;
}

// Makes the new cells of a joint update, and those of the copy. When it returns, all workers have theirs; who
// does not return from the last exchange has them, too.
Status Worker::renew(runtime::Collectives& c, const Measured& measured) {
  pending_->new_own = own_;
  RETURN_IF_ERROR(apply(*apply_, pending_->new_own, std::move(pending_->own), measured, &c));
  ASSIGN_OR_RETURN(pending_->new_kept, fetch_copies(c, pending_->new_own));
  pending_->renewed = true;
  fault_point("renew", step_ + 1, rank_);
  std::vector<int64_t> everyone(static_cast<size_t>(c.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  Bytes done;
  append_value(done, int64_t{1});
  RETURN_IF_ERROR(exchange(c, everyone, done, std::vector<size_t>(everyone.size(), done.size())));
  return Status();
}

Status Worker::finish_with(const Measured& measured) {
  OSTRO_CHECK(can_finish(), "step {} has nothing to finish it with", step_ + 1);
  RETURN_IF_ERROR(compile());
  train::StepResult result = pending_->result;
  result.loss = measured.loss;
  result.gradient_norm = measured.gradient_norm;
  result.group_norms = measured.group_norms;
  result.ok = measured.ok;
  if (plan_.update.joint) {
    own_ = std::move(pending_->new_own), kept_ = std::move(pending_->new_kept);
  } else {
    RETURN_IF_ERROR(apply(*apply_, own_, std::move(pending_->own), measured));
    const bool stale = plan_.fault == WorkerFault::kStaleReplica && step_ + 1 == kStaleStep;
    if (apply_kept_ != nullptr && !stale)
      RETURN_IF_ERROR(apply(*apply_kept_, kept_, std::move(pending_->kept), measured));
  }
  pending_.reset();
  last_ = std::move(result);
  if (measured.ok) ++step_;
  return Status();
}

Status Worker::apply(runtime::Executable& program, Cells& cells, Buffers gradients, const Measured& measured,
                     runtime::Collectives* group) {
  const size_t n = cells.params.size(), kept = cells.kept.size();
  Buffers inputs;
  for (Buffers* part : {&cells.params, &cells.kept, &gradients}) {
    for (Buffer& b : *part) inputs.push_back(std::move(b));
    part->clear();
  }
  inputs.push_back(Buffer::scalar(ir::DType::f64, pending_->result.weight));
  for (const float x : pending_->scalars) inputs.push_back(Buffer::scalar(ir::DType::f32, x));
  inputs.push_back(Buffer::scalar(ir::DType::f32, measured.loss));
  inputs.push_back(Buffer::scalar(ir::DType::f64, measured.gradient_norm));
  inputs.push_back(Buffer::scalar(ir::DType::boolean, static_cast<uint8_t>(measured.ok)));
  for (const double norm : measured.group_norms) inputs.push_back(Buffer::scalar(ir::DType::f64, norm));
  ASSIGN_OR_RETURN(Buffers out, program.run(std::move(inputs), {group}));
  for (size_t i = 0; i < n + kept; ++i) train::list_of(cells, i, n).push_back(std::move(out[i]));
  return Status();
}

Status Worker::look(runtime::Collectives& c, train::StepResult& result) {
  RETURN_IF_ERROR(compile());
  ASSIGN_OR_RETURN(const Buffers out, prints_->run(own_.params, {&c}));
  result.prints.clear(), result.expert_loads.clear();
  for (size_t i = 0; i < out.size(); ++i)
    if (i < plan_.n) {
      ASSIGN_OR_RETURN(result.prints.emplace_back(), train::fingerprint_lanes(out[i]));
    } else {
      ASSIGN_OR_RETURN(result.expert_loads.emplace_back(), out[i].to_host());
    }
  return Status();
}

}  // namespace ostro::fleet
