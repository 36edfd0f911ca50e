#include "ostro/cpu/plan/runner.h"

#include <fmt/format.h>

#include <cstring>
#include <functional>

#include "ostro/base/watch/pulse.h"
#include "ostro/cpu/routines/contraction.h"
#include "ostro/cpu/routines/flights.h"
#include "ostro/cpu/routines/op_call.h"

namespace ostro::cpu {

using compile::Step;
using compile::StepKind;
using compile::View;
using ir::OpKind;

namespace {

std::vector<char*> constants_of(const compile::Plan& plan) {
  std::vector<char*> constants;
  for (const std::vector<std::byte>& bytes : plan.constants)
    constants.push_back(const_cast<char*>(reinterpret_cast<const char*>(bytes.data())));
  return constants;
}

}  // namespace

PlanRunner::PlanRunner(const compile::Plan& plan, const PlanContext& context)
    : PlanWalk(plan, constants_of(plan)), context_(context), prepared_(plan.steps.size()) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.kind == StepKind::kOp && step.op == OpKind::dot && step.out[0].shape.count() > 0)
      prepared_[i].gemm = std::make_unique<kernels::Gemm>(gemm_spec(step, *context.leaves), context.isa);
    if (prepared_[i].gemm != nullptr && step.keeps_b)
      prepared_[i].packed = std::make_unique<kernels::PackedB>();
    for (const compile::Plan& region : step.regions)
      prepared_[i].regions.push_back(std::make_unique<PlanRunner>(region, context));
  }
  if (plan_times_wanted()) times_.resize(plan.steps.size());
}

PlanRunner::~PlanRunner() = default;

int64_t PlanRunner::fallback_steps() const {
  int64_t n = 0;
  for (size_t i = 0; i < plan().steps.size(); ++i) {
    const Step& step = plan().steps[i];
    if (step.kind == StepKind::kOp && (ir::is_elementwise(step.op) ||
                                       (op_routine(step.op) == run_reduction && step.op != OpKind::tree_sum)))
      ++n;
    for (const auto& region : prepared_[i].regions) n += region->fallback_steps();
  }
  return n;
}

void PlanRunner::append_times(std::vector<StepRow>& rows, int depth) const {
  for (size_t i = 0; i < times_.size(); ++i) {
    rows.push_back({&plan().steps[i], times_[i], depth});
    for (const auto& region : prepared_[i].regions) region->append_times(rows, depth + 1);
  }
}

void PlanRunner::label_steps(const std::string& program, const std::string& place) {
  if (!labels_.empty()) return;
  for (size_t i = 0; i < plan().steps.size(); ++i) {
    labels_.push_back(compile::step_label(plan().steps[i], program, fmt::format("{}{}", place, i)));
    for (size_t r = 0; r < prepared_[i].regions.size(); ++r)
      prepared_[i].regions[r]->label_steps(program, fmt::format("{}{}.{}.", place, i, r));
  }
}

void PlanRunner::clear_times() {
  times_.assign(times_.size(), {});
  for (const Prepared& prepared : prepared_)
    for (const auto& region : prepared.regions) region->clear_times();
}

std::vector<Array> PlanRunner::arrays(const std::vector<View>& views) const {
  std::vector<Array> out;
  for (const View& v : views) out.push_back({&v, data(v)});
  return out;
}

// The steps inside a loop are asked one by one; of the loop itself only carries are copied, if it does not
// run.
Status PlanRunner::land_before(const Step& step) {
  const bool loop =
      step.kind == StepKind::kTiles || (step.kind == StepKind::kLoop && step.attrs.i64("length") > 0);
  if (loop) return Status();
  std::vector<MemoryRange> reads, writes;
  // All of the buffer, for a view may reach anywhere in it.
  const auto add = [&](std::vector<MemoryRange>& to, const View& v) {
    to.push_back({base(v.buffer), base(v.buffer) + buffer(v.buffer).bytes});
  };
  const std::function<void(const Step&)> add_all = [&](const Step& s) {
    for (size_t i = 0; i < s.in.size() && (i == 0 || s.kind != StepKind::kBranch); ++i) add(reads, s.in[i]);
    for (size_t i = 0; i < s.out.size() && s.kind != StepKind::kBranch; ++i) add(writes, s.out[i]);
    for (const Step& epilogue : s.epilogues) add_all(epilogue);
  };
  add_all(step);
  return context_.flights->before(reads, writes);
}

Status PlanRunner::tell_reads(size_t step, int64_t iteration, runtime::RunWatch& watch) {
  for (const compile::WatchedArray& array : watched_[step].reads) {
    if ((array.each > 0) != (iteration >= 0)) continue;
    const int64_t first = iteration >= 0 ? iteration * array.each : 0;
    const int64_t end = iteration >= 0 ? first + array.each : array.bytes;
    RETURN_IF_ERROR(watch.before_read(static_cast<size_t>(array.index), first, end));
  }
  return Status();
}

// What an exchange on its way is to bring into a result is waited for.
Status PlanRunner::tell_makes(size_t step, int64_t iteration, runtime::RunWatch& watch) {
  for (const compile::WatchedArray& array : watched_[step].makes) {
    if ((array.each > 0) != (iteration >= 0)) continue;
    const int64_t first = iteration >= 0 ? iteration * array.each : 0;
    const int64_t end = iteration >= 0 ? first + array.each : array.bytes;
    if (!context_.flights->empty()) {
      const MemoryRange range{base(array.buffer) + first, base(array.buffer) + end};
      RETURN_IF_ERROR(context_.flights->before(std::span(&range, 1), {}));
    }
    RETURN_IF_ERROR(watch.made(static_cast<size_t>(array.index), first, end));
  }
  return Status();
}

Status PlanRunner::run_step(size_t index, const runtime::RunContext& run_context) {
  if (!watches(run_context)) return run_unwatched(index, run_context);
  RETURN_IF_ERROR(tell_reads(index, -1, *run_context.watch));
  RETURN_IF_ERROR(run_unwatched(index, run_context));
  return tell_makes(index, -1, *run_context.watch);
}

Status PlanRunner::run_unwatched(size_t index, const runtime::RunContext& run_context) {
  const Step& step = plan().steps[index];
  pulse_touch();  // a leaf may take minutes; it does not hang
  const StepTimer timer(times_.empty() ? nullptr : &times_[index],
                        labels_.empty() ? nullptr : &labels_[index]);
  if (!context_.flights->empty()) RETURN_IF_ERROR(land_before(step));
  switch (step.kind) {
    case StepKind::kCopy:
      copy_view({&step.in[0], data(step.in[0])}, {&step.out[0], data(step.out[0])}, *context_.pool);
      return Status();
    case StepKind::kKernel: return run_kernel(step);
    case StepKind::kLoop:
    case StepKind::kBranch:
    case StepKind::kTiles: return run_nested(index, run_context);
    case StepKind::kOp: break;
  }
  return run_op(step, prepared_[index], run_context);
}

Status PlanRunner::run_op(const Step& step, const Prepared& prepared,
                          const runtime::RunContext& run_context) {
  if (step.op == OpKind::dot) {
    const bool stored = step.in[1].shape.dtype == ir::DType::i8;
    const kernels::GemmB b(data(step.in[1]), stored ? data(step.in[2]) : nullptr);
    if (prepared.packed != nullptr) {
      if (!go_on()) prepared.gemm->pack_b(*context_.pool, b, *prepared.packed);
      prepared.gemm->run(*context_.pool, data(step.in[0]), *prepared.packed, data(step.out[0]));
    } else if (prepared.gemm != nullptr) {
      prepared.gemm->run(*context_.pool, data(step.in[0]), b, data(step.out[0]), step.goes_on && go_on());
    }
    return Status();
  }
  const std::vector<Array> in = arrays(step.in), out = arrays(step.out);
  const OpRoutine routine = op_routine(step.op);
  OSTRO_CHECK(routine != nullptr, "no routine for {}", ir::op_name(step.op));
  const OpCall call{step.op,
                    step.attrs,
                    in,
                    out,
                    *context_.leaves,
                    run_context,
                    *context_.pool,
                    context_.isa,
                    *context_.flights,
                    step.goes_on && go_on()};
  if (step.epilogues.empty()) return routine(call);
  const Step& gradient = step.epilogues[0];  // of a cross-entropy
  const std::vector<Array> from = arrays(gradient.in), to = arrays(gradient.out);
  return run_cross_entropy_both(call, {gradient.op, gradient.attrs, from, to, *context_.leaves, run_context,
                                       *context_.pool, context_.isa, *context_.flights});
}

Status PlanRunner::run_kernel(const Step& step) {
  char* pointers[compile::kMaxKernelPointers];
  OSTRO_CHECK(step.in.size() + step.out.size() <= std::size(pointers), "a kernel of {} operands",
              step.in.size() + step.out.size());
  size_t n = 0;
  for (const View& v : step.in) pointers[n++] = data(v);
  for (const View& v : step.out) pointers[n++] = data(v);
  const KernelFunction kernel = (*context_.kernels)[static_cast<size_t>(step.kernel)];
  const auto run = [&](int64_t begin, int64_t end) { kernel(pointers, begin, end); };
  if (step.epilogues.empty()) {
    context_.pool->parallel_for(step.extent, run, step.grain);
    return Status();
  }
  std::vector<std::vector<Array>> in, out;
  for (const Step& epilogue : step.epilogues) {
    in.emplace_back(arrays(epilogue.in));
    out.emplace_back(arrays(epilogue.out));
  }
  return run_with_fingerprints(step, run, arrays(step.in), in, out, *context_.pool, context_.isa);
}

Status PlanRunner::move(char* to, const char* from, int64_t bytes) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
  return Status();
}

}  // namespace ostro::cpu
