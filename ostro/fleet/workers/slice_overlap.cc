#include "ostro/fleet/workers/slice_overlap.h"

#include "ostro/base/watch/fault_point.h"
#include "ostro/base/watch/pulse.h"

namespace ostro::fleet {
namespace {

// An array is cut along its leading axis where no worker has only some of its indices.
std::vector<bool> cut_by_row(const WorkerPlan& plan, size_t arrays) {
  std::vector<bool> out;
  for (size_t k = 0; k < arrays; ++k)
    out.push_back(!plan.cut(k).empty() && !plan.cut(k)[0].split() && !plan.used(k)[0].split());
  return out;
}

std::vector<size_t> first_numbers(size_t count) {
  std::vector<size_t> out;
  for (size_t k = 0; k < count; ++k) out.push_back(k);
  return out;
}

CellBuffers pieces_of(const CellBuffers& arrays, const std::vector<ArrayPiece>& pieces) {
  CellBuffers out;
  for (const ArrayPiece& piece : pieces) out.push_back(piece_of(arrays[piece.k], piece.row));
  return out;
}

}  // namespace

// Parameters are the first of the leaf program.
OverlapChunks::OverlapChunks(const WorkerPlan& plan)
    : read(Chunks::read_by(plan.programs.leaf, first_numbers(plan.n), cut_by_row(plan, plan.n))),
      made(Chunks::made_by(plan.programs.leaf, plan.at.leaf_results.gradients,
                           cut_by_row(plan, plan.trained))) {}

SliceOverlap::SliceOverlap(const WorkerPlan& plan, SliceExchange& exchange, const OverlapChunks& chunks,
                           GradientAdder& adder, runtime::Collectives& c, int64_t rank, int64_t leaves)
    : plan_(plan),
      exchange_(exchange),
      chunks_(chunks),
      adder_(adder),
      c_(c),
      rank_(rank),
      leaves_(leaves),
      gradient_of_result_(plan.programs.leaf.body.results.size(), -1),
      gather_(exchange, c, true),
      progress_(chunks.made) {
  for (size_t k = 0; k < plan.trained; ++k)
    gradient_of_result_[plan.at.leaf_results.gradients[k]] = static_cast<int64_t>(k);
}

Status SliceOverlap::start(const CellBuffers& owned, const CellBuffers& copies) {
  RETURN_IF_ERROR(gather_.start(owned, copies, chunks_.read));
  if (!plan_.engine->info().tells_watch) RETURN_IF_ERROR(gather_.finish());
  ASSIGN_OR_RETURN(parameters_, runtime::all_to(gather_.whole(), plan_.engine->memory()));
  return Status();
}

runtime::RunWatch* SliceOverlap::watch(const SubtreeSums* before, train::Subtree leaf) {
  before_ = before;
  leaf_ = leaf;
  return plan_.engine->info().tells_watch ? this : nullptr;
}

void SliceOverlap::begin(const std::vector<runtime::Buffer>& results) {
  gradients_.clear();
  if (before_ == nullptr) return;
  for (const size_t result : plan_.at.leaf_results.gradients) gradients_.push_back(results[result]);
}

Status SliceOverlap::before_read(size_t param, int64_t begin, int64_t end) {
  if (param >= plan_.n) return Status();
  const SecondsOf aside(seconds_aside_);
  return gather_.finish(chunks_.read.through(param, begin, end, plan_.used_shape(param, rank_).bytes()));
}

Status SliceOverlap::made(size_t result, int64_t begin, int64_t end) {
  const int64_t k = gradient_of_result_[result];
  if (before_ == nullptr || k < 0) return Status();
  const SecondsOf aside(seconds_aside_);
  const auto array = static_cast<size_t>(k);
  progress_.add(array, begin, end, gradients_[array].shape().bytes());
  return give(progress_.complete());
}

// No gradient is sent before all parameters are there, so that all workers keep to one order.
Status SliceOverlap::give(size_t chunks) {
  while (joins_.size() < chunks) {
    RETURN_IF_ERROR(gather_.finish());
    const std::vector<ArrayPiece>& pieces = chunks_.made[joins_.size()];
    if (joins_.empty()) fault_aside("exchange", read_pulse().step, rank_);
    if (joins_.size() == chunks_.made.size() / 2) fault_aside("overlap", read_pulse().step, rank_);
    SubtreeSums mine(leaves_, plan_.options.slice_partials, adder_);
    if (before_ != nullptr)
      for (const auto& [node, sum] : before_->sums())
        RETURN_IF_ERROR(mine.push(node, pieces_of(sum, pieces)));
    if (!gradients_.empty()) RETURN_IF_ERROR(mine.push(leaf_, pieces_of(gradients_, pieces)));
    joins_.emplace_back(exchange_, leaves_, pieces, true);
    RETURN_IF_ERROR(joins_.back().start(c_, mine.take()));
    if (joins_.size() > 1) RETURN_IF_ERROR(joins_[joins_.size() - 2].pass_on(c_, adder_));
  }
  return Status();
}

Status SliceOverlap::leaves_done(const CellBuffers& gradients) {
  gradients_ = gradients;
  RETURN_IF_ERROR(gather_.finish());
  RETURN_IF_ERROR(give(chunks_.made.size()));
  if (!joins_.empty()) RETURN_IF_ERROR(joins_.back().pass_on(c_, adder_));  // else nothing is trained
  gradients_.clear();  // a leaf that is computed again takes their room; joins keep what they still send
  return Status();
}

Result<CellBuffers> SliceOverlap::finish() { return exchange_.finish(c_, joins_); }

}  // namespace ostro::fleet
