#include "ostro/cuda/engine/routine_table.h"

#include "ostro/cuda/attention/attention.h"
#include "ostro/cuda/integers/integers.h"
#include "ostro/cuda/losses/cross_entropy.h"
#include "ostro/cuda/products/products.h"
#include "ostro/cuda/routines/routines.h"

namespace ostro::cuda {

using ir::OpKind;

StepRoutine step_routine(OpKind kind) {
  switch (kind) {
    case OpKind::concat:
    case OpKind::stack:
      return run_concat;
    case OpKind::pad:
      return run_pad;
    case OpKind::dynamic_slice:
      return run_dynamic_slice;
    case OpKind::dynamic_update_slice:
      return run_dynamic_update_slice;
    case OpKind::shard_slice:
      return run_shard_slice;
    case OpKind::all_gather:
      return run_all_gather;
    case OpKind::reduce_scatter_tree:
      return run_reduce_scatter;
    case OpKind::all_reduce_tree:
    case OpKind::all_reduce_max:
    case OpKind::all_reduce_int:
    case OpKind::all_reduce_bits:
      return run_all_reduce;
    case OpKind::exchange_leaves:
      return run_exchange_leaves;
    case OpKind::dequantize:
      return run_dequantize;
    case OpKind::iota:
      return run_iota;
    case OpKind::random:
      return run_random;
    case OpKind::fold_in:
      return run_fold_in;
    case OpKind::gather:
      return run_gather;
    case OpKind::scatter_add:
      return run_scatter_add;
    case OpKind::sort:
    case OpKind::top_k:
      return run_sort;
    case OpKind::sum:
    case OpKind::reduce_max:
    case OpKind::reduce_min:
    case OpKind::argmax:
    case OpKind::tree_sum:
      return run_reduction;
    case OpKind::dot:
      return run_dot;
    case OpKind::quantize:
      return run_quantize;
    case OpKind::dot_int8:
      return run_dot_int8;
    case OpKind::expert_dot:
      return run_expert_dot;
    case OpKind::expert_outer:
      return run_expert_outer;
    case OpKind::attention:
      return run_attention;
    case OpKind::attention_grad:
      return run_attention_grad;
    case OpKind::cross_entropy:
      return run_cross_entropy;
    case OpKind::cross_entropy_sum:
      return run_cross_entropy_sum;
    case OpKind::cross_entropy_grad:
      return run_cross_entropy_grad;
    case OpKind::box_sumsq:
      return run_box_sumsq;
    case OpKind::fingerprint:
      return run_fingerprint;
    default:
      return nullptr;
  }
}

compile::Target device_target() {
  compile::Target target;
  target.reads_views = [](OpKind k) {
    return ir::is_elementwise(k) || k == OpKind::dot || k == OpKind::expert_dot ||
           k == OpKind::expert_outer || k == OpKind::attention || k == OpKind::attention_grad ||
           k == OpKind::concat || k == OpKind::stack || k == OpKind::quantize;
  };
  target.epilogues = false;
  target.saved_elements = 4096;  // 64 registers a thread
  return target;
}

Status check_supported(const compile::Plan& plan, const std::string& program) {
  for (const compile::Step& step : plan.steps) {
    const std::string place = program + ": " + compile::step_name(step);
    if (step.kind == compile::StepKind::kOp && step_routine(step.op) == nullptr)
      return unsupported(fmt::format(
          "{}: the op {} has no kernel for a GPU yet; run this program on the CPU (trainer.device: cpu)",
          place, ir::op_name(step.op)));
    for (const auto* views : {&step.in, &step.out})
      for (const compile::View& v : *views)
        if (v.shape.rank() > args::MOST_AXES)
          return unsupported(fmt::format("{}: {} has {} axes; a kernel for a GPU takes {}", place,
                                         v.shape.str(), v.shape.rank(), +args::MOST_AXES));
    for (const compile::Plan& region : step.regions) RETURN_IF_ERROR(check_supported(region, program));
  }
  return Status();
}

}  // namespace ostro::cuda
