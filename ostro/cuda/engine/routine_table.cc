#include "ostro/cuda/engine/routine_table.h"

#include "ostro/cuda/routines/routines.h"
#include "ostro/cuda/steps/fast_routines.h"
#include "ostro/ir/program/op_rows.h"

namespace ostro::cuda {

using ir::OpKind;

StepRoutine step_routine(OpKind kind) {
  using enum OpKind;
  static constexpr ir::OpRow<StepRoutine> kRows[] = {
      {run_concat, {concat, stack}},
      {run_pad, {pad}},
      {run_dynamic_slice, {dynamic_slice}},
      {run_dynamic_update_slice, {dynamic_update_slice}},
      {run_shard_slice, {shard_slice}},
      {run_all_gather, {all_gather}},
      {run_reduce_scatter, {reduce_scatter_tree}},
      {run_all_reduce, {all_reduce_tree, all_reduce_max, all_reduce_int, all_reduce_bits}},
      {run_exchange_leaves, {exchange_leaves}},
      {run_dequantize, {dequantize}},
      {run_iota, {iota}},
      {run_random, {random}},
      {run_fold_in, {fold_in}},
      {run_gather, {gather}},
      {run_scatter_add, {scatter_add}},
      {run_sort, {sort, top_k}},
      {run_reduction, {sum, reduce_max, reduce_min, argmax, tree_sum}},
      {run_dot, {dot}},
      {run_quantize, {quantize}},
      {run_dot_int8, {dot_int8}},
      {run_expert_dot_int8, {expert_dot_int8}},
      {run_expert_outer_int8, {expert_outer_int8}},
      {run_expert_dot, {expert_dot}},
      {run_expert_outer, {expert_outer}},
      {run_attention, {attention}},
      {run_attention_grad, {attention_grad}},
      {run_paged_write, {paged_write}},
      {run_paged_attention, {paged_attention}},
      {run_cross_entropy, {cross_entropy}},
      {run_cross_entropy_sum, {cross_entropy_sum}},
      {run_cross_entropy_grad, {cross_entropy_grad}},
      {run_box_sumsq, {box_sumsq}},
      {run_fingerprint, {fingerprint}},
  };
  return ir::function_of(kRows, kind);
}

compile::Target device_target() {
  compile::Target target;
  target.reads_views = [](OpKind k) {
    return ir::is_elementwise(k) || k == OpKind::dot || k == OpKind::expert_dot ||
           k == OpKind::expert_outer || k == OpKind::attention || k == OpKind::attention_grad ||
           k == OpKind::paged_attention || k == OpKind::concat || k == OpKind::stack || k == OpKind::quantize;
  };
  target.fingerprint_epilogues = false;
  target.packs = false;
  // Products of a tile must be enough work for all multiprocessors.
  target.tile_bytes = int64_t{128} << 20;
  target.least_tile_rows = 512;
  target.saved_elements = 4096;  // 64 registers a thread
  return target;
}

namespace {

Status check_step(const compile::Step& step, const std::string& program) {
  const std::string place = program + ": " + compile::step_name(step);
  if (step.kind == compile::StepKind::kOp && step_routine(step.op) == nullptr)
    return unsupported(fmt::format(
        "{}: the op {} has no kernel for a GPU yet; run this program on the CPU (trainer.device: cpu)", place,
        ir::op_name(step.op)));
  for (const auto* views : {&step.in, &step.out})
    for (const compile::View& v : *views)
      if (v.shape.rank() > args::MOST_AXES)
        return unsupported(fmt::format("{}: {} has {} axes; a kernel for a GPU takes {}", place,
                                       v.shape.str(), v.shape.rank(), +args::MOST_AXES));
  for (const compile::Step& epilogue : step.epilogues) RETURN_IF_ERROR(check_step(epilogue, program));
  for (const compile::Plan& region : step.regions) RETURN_IF_ERROR(check_supported(region, program));
  return Status();
}

}  // namespace

Status check_supported(const compile::Plan& plan, const std::string& program) {
  for (const compile::Step& step : plan.steps) RETURN_IF_ERROR(check_step(step, program));
  return Status();
}

}  // namespace ostro::cuda
