// run_<op>, copy_view: the routines of the other ops on a device. The files of device text beside them say
// how the work is divided among threads. Errors and threads: those of routines (cuda/steps/step_call.h).
//
// Operands are dense unless device_target().reads_views(kind); results are dense.
#pragma once

#include "ostro/cuda/steps/step_call.h"

namespace ostro::cuda {

// A value with its own view.
struct DevicePart {
  compile::View view;
  gpu::Address at;
  DeviceArray array() const { return {&view, at}; }
};
// The part [start, start + size) of `whole` along one axis.
DevicePart part_of(const DeviceArray& whole, const std::string& axis, int64_t start, int64_t size);

// Copies elements between views of any strides and equal sizes.
Status copy_view(const StepCall& call, const DeviceArray& from, const DeviceArray& to);
Status fill_zero(const StepCall& call, gpu::Address to, int64_t bytes);
// The fast forms of both (copies.cc).
Status copy_runs(const StepCall& call, const DeviceArray& from, const DeviceArray& to);
Status fill_words(const StepCall& call, gpu::Address to, int64_t bytes);

// layout.cc
Status run_concat(const StepCall& call);  // concat, stack
Status run_pad(const StepCall& call);
Status run_dynamic_slice(const StepCall& call);
Status run_dynamic_update_slice(const StepCall& call);
Status run_shard_slice(const StepCall& call);
Status run_dequantize(const StepCall& call);
// sources.cc
Status run_iota(const StepCall& call);
Status run_random(const StepCall& call);
Status run_fold_in(const StepCall& call);
// indexed.cc
Status run_gather(const StepCall& call);
Status run_scatter_add(const StepCall& call);
Status run_sort(const StepCall& call);       // sort, top_k
Status run_reduction(const StepCall& call);  // sum, reduce_max, reduce_min, argmax, tree_sum
// state.cc
Status run_box_sumsq(const StepCall& call);
Status run_fingerprint(const StepCall& call);
// exchange.cc
Status run_all_gather(const StepCall& call);
Status run_reduce_scatter(const StepCall& call);
Status run_all_reduce(const StepCall& call);
Status run_exchange_leaves(const StepCall& call);

}  // namespace ostro::cuda
