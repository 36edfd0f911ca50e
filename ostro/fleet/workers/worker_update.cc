// The second half of a worker's step: from the gradients of its cells to the new cells. Until the gradient
// norm is known nothing is changed, and from then on no other worker is needed. So when one of them is lost,
// the others are all before or all behind a step once they have told each other the norm. Where the update is
// joint, the new cells are made beside the old ones, and take their place when all workers have theirs.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/base/profile.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/fleet/exchange/gather_all.h"
#include "ostro/fleet/workers/copy_checks.h"
#include "ostro/fleet/workers/worker.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::fleet {
namespace {

using runtime::Buffer;

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
  RETURN_IF_ERROR(compile_once(report_, program_of(plan_.update.report, rank_), {}));
  if (const std::optional<int64_t> other = plan_.mirror_of(rank_); other && !plan_.update.joint)
    if (apply_mirror_ == nullptr) {
      ASSIGN_OR_RETURN(const ir::Program program, mirrored_apply(plan_, *other));
      const auto gradients = static_cast<size_t>(plan_.mirrored_gradients());
      RETURN_IF_ERROR(
          compile_once(apply_mirror_, program, train::update_options(plan_.mirrored.size() + gradients)));
    }
  return Status();
}

Status Worker::adopt(const train::State& state) {
  const auto take = [&](int64_t rank, size_t k, Cells& cells) -> Status {
    ASSIGN_OR_RETURN(const Buffer whole, train::array_of(state, k).to_host());
    train::list_of(cells, k, plan_.n).push_back(spmd::shard(plan_.mesh(), rank, plan_.owned(k), whole));
    return Status();
  };
  Cells own, mirror;
  for (size_t k = 0; k < plan_.arrays.size(); ++k) RETURN_IF_ERROR(take(rank_, k, own));
  if (const std::optional<int64_t> other = plan_.mirror_of(rank_))
    for (const size_t k : plan_.mirrored) RETURN_IF_ERROR(take(*other, k, mirror));
  adopt_cells(std::move(own), std::move(mirror), state.step);
  return Status();
}

void Worker::adopt_cells(Cells own, Cells mirror, int64_t step, train::StepResult last) {
  last_ = std::move(last);
  own_ = std::move(own), mirror_ = std::move(mirror);
  step_ = step;
  pending_.reset();
  schedule_->reset();
}

Result<Cells> Worker::fetch_copies(runtime::Collectives& c, const Cells& own) const {
  Cells copies;
  ASSIGN_OR_RETURN(copies.params, exchange_mirrored(c, own.params));
  ASSIGN_OR_RETURN(copies.optimizer, exchange_mirrored(c, own.optimizer, plan_.n));
  return copies;
}

Result<train::StepResult> Worker::update(runtime::Collectives& c, Buffers gradients,
                                         const std::vector<float>& scalars, train::StepResult result) {
  phase("update");
  Pending pending{std::move(gradients), {}, scalars, std::move(result), 0};
  std::tie(pending.loss_sum, pending.result.weight) = train::join_losses(pending.result.leaves);
  pending.result.measures = train::join_measures(pending.result.leaves);
  if (!plan_.update.joint) {
    ASSIGN_OR_RETURN(pending.mirror, exchange_mirrored(c, pending.own));
  }
  pending_ = std::move(pending);
  fault_point("update", step_ + 1, rank_);
  ASSIGN_OR_RETURN(const train::Measured measured, measure(c));
  if (plan_.update.joint) RETURN_IF_ERROR(make_new_cells(c, measured));
  fault_point("commit", step_ + 1, rank_);
  RETURN_IF_ERROR(finish_with(measured));
  RETURN_IF_ERROR(compare_copies(c));
  fault_point("gather", step_, rank_);
  RETURN_IF_ERROR(add_fingerprints(c, last_));
  return last_;
}

// The owner of cells sends them to the worker that mirrors it.
Result<Worker::Buffers> Worker::exchange_mirrored(runtime::Collectives& c, const Buffers& owned,
                                                  size_t first) const {
  Buffers copies;
  const std::optional<int64_t> other = plan_.mirror_of(rank_);
  if (!other) return copies;
  const int64_t holder = plan_.holders[static_cast<size_t>(rank_)];
  for (const size_t k : plan_.mirrored) {
    if (k < first || k >= first + owned.size()) continue;
    ASSIGN_OR_RETURN(const Buffer mine, owned[k - first].to_host());
    copies.push_back(Buffer::empty(plan_.owned_shape(k, *other)));
    RETURN_IF_ERROR(send_and_receive(c, holder, mine.bytes(), *other, copies.back().mutable_bytes()));
  }
  return copies;
}

Result<train::Measured> Worker::measure(runtime::Collectives& c) {
  const MeasureParams<Buffer> in{pending_->own, Buffer::scalar(ir::DType::f64, pending_->loss_sum),
                                 Buffer::scalar(ir::DType::f64, pending_->result.weight)};
  RETURN_IF_ERROR(compile());
  ASSIGN_OR_RETURN(Buffers out, measure_->run(train::as_list(in), {&c}));
  return train::numbers_of(train::read_fields(plan_.update.measures, std::move(out)));
}

// Makes the new cells of a joint update, and those of the mirror. When it returns, all workers have theirs; a
// worker that does not return from the last exchange has them, too.
Status Worker::make_new_cells(runtime::Collectives& c, const train::Measured& measured) {
  pending_->new_own = own_;
  RETURN_IF_ERROR(apply(*apply_, pending_->new_own, std::move(pending_->own), measured, &c));
  ASSIGN_OR_RETURN(pending_->new_mirror, fetch_copies(c, pending_->new_own));
  pending_->renewed = true;
  fault_point("renew", step_ + 1, rank_);
  return barrier(c);
}

Status Worker::finish_with(const train::Measured& measured) {
  OSTRO_CHECK(can_finish(), "step {} has nothing to finish it with", step_ + 1);
  RETURN_IF_ERROR(compile());
  train::StepResult result = pending_->result;
  result.measured = measured;
  if (plan_.update.joint) {
    own_ = std::move(pending_->new_own), mirror_ = std::move(pending_->new_mirror);
  } else {
    RETURN_IF_ERROR(apply(*apply_, own_, std::move(pending_->own), measured));
    if (apply_mirror_ != nullptr)
      RETURN_IF_ERROR(apply(*apply_mirror_, mirror_, std::move(pending_->mirror), measured));
  }
  pending_.reset();
  last_ = std::move(result);
  if (last_.ok()) ++step_;
  return Status();
}

Status Worker::apply(runtime::Executable& program, Cells& cells, Buffers gradients,
                     const train::Measured& measured, runtime::Collectives* group) {
  const ApplyResults<size_t> at = train::places_of(ApplyResults<Buffer>{cells.params, cells.optimizer});
  // Moved: what the program may overwrite has no other handle.
  ApplyParams<Buffer> in{std::move(cells.params), std::move(cells.optimizer), std::move(gradients)};
  in.weight = Buffer::scalar(ir::DType::f64, pending_->result.weight);
  for (const float x : pending_->scalars) in.scalars.push_back(Buffer::scalar(ir::DType::f32, x));
  in.measures = train::buffers_of(measured);
  ASSIGN_OR_RETURN(Buffers out, program.run(train::as_list(std::move(in)), {group}));
  ApplyResults<Buffer> made = train::read_fields(at, std::move(out));
  cells = {std::move(made.params), std::move(made.optimizer)};
  return Status();
}

// The copies of the cells that a step has changed, with those of other workers.
Status Worker::compare_copies(runtime::Collectives& c) {
  if (!last_.ok()) return Status();
  if (own_.params.back().on_host()) fault_bytes("cell", step_, rank_, own_.params.back().mutable_bytes());
  if (!plan_.options.check.on()) return Status();
  RETURN_IF_ERROR(check_copies(plan_, c, own_, mirror_, checks_));
  last_.check_seconds = checks_.seconds, last_.checked_leaves = checks_.leaves;
  return Status();
}

Status Worker::add_fingerprints(runtime::Collectives& c, train::StepResult& result) {
  RETURN_IF_ERROR(compile());
  ASSIGN_OR_RETURN(Buffers out, report_->run(own_.params, {&c}));
  ReportResults<Buffer> told = train::read_fields(plan_.update.reported, std::move(out));
  RETURN_IF_ERROR(train::put_report(result, told.report, std::move(told.expert_loads)));
  return Status();
}

}  // namespace ostro::fleet
