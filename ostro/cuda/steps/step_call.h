// StepCall: the argument of every routine, for one execution of one op of a Plan on a device.
//
// A routine fills the argument of a kernel and launches it. Index tables are made at the first run of a step
// and stay on the device with it. Errors: those of the device, and kUnsupported for sizes that a kernel does
// not take. One thread at a time.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/compile/plan/axes.h"
#include "ostro/compile/plan/contraction.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/cuda/steps/kernels.h"
#include "ostro/cuda/text/arguments_host.h"
#include "ostro/runtime/engine.h"

namespace ostro::cuda {

// Elements of a value in device memory: `at` is that of the element with all indices 0.
struct DeviceArray {
  const compile::View* view = nullptr;
  gpu::Address at;

  const ir::Shape& shape() const { return view->shape; }
  ir::DType dtype() const { return view->shape.dtype; }
  int64_t count() const { return view->shape.count(); }
};

// The state that a step keeps from one run to the next: blocks of the device, and the order of its
// contraction.
struct StepState {
  std::optional<compile::Contraction> contraction;
  std::vector<std::shared_ptr<runtime::Block>> blocks;
};

// Everything is borrowed for the duration of the call.
struct StepCall {
  const compile::Step& step;
  std::span<const DeviceArray> in, out;
  const numerics::LeafTable& leaves;
  const runtime::RunContext& context;
  Kernels& kernels;
  StepState& state;
  std::vector<std::byte>& host;  // for what is exchanged with other workers; grows to the largest exchange
  bool go_on;                    // compile::PlanWalk::go_on
  const std::string& place;      // for errors

  gpu::Device& device() const { return kernels.device(); }
  const ir::Attrs& attrs() const { return step.attrs; }

  // Launches a kernel with at least `threads` threads, in blocks of 256; does nothing for 0.
  template <typename Args>
  Status launch(const char* file, const char* kernel, int64_t threads, const Args& args) const {
    if (threads == 0) return Status();
    return launch(file, kernel, gpu::LaunchShape{.x = (threads + 255) / 256, .threads = 256}, args);
  }
  template <typename Args>
  Status launch(const char* file, const char* kernel, const gpu::LaunchShape& shape, const Args& args) const {
    if (shape.x * shape.y * shape.z == 0) return Status();
    ASSIGN_OR_RETURN(const gpu::Kernel found, kernels.find(file, kernel));
    return device().launch(found, shape, std::as_bytes(std::span(&args, 1)), place);
  }

  // The order in which the step contracts these axes; made once.
  const compile::Contraction& contraction(const std::vector<ir::Axis>& summed,
                                          const numerics::LeafTable& table) const {
    if (!state.contraction) state.contraction = compile::contraction_of(summed, table);
    return *state.contraction;
  }
  // The address of table `number` of this step, of i64; make() returns its elements at the first run.
  template <typename Make>
  Result<uint64_t> table(size_t number, Make&& make) const {
    if (number >= state.blocks.size() || state.blocks[number] == nullptr) {
      const std::vector<int64_t> elements = make();
      RETURN_IF_ERROR(reserve(number, std::max<int64_t>(8, static_cast<int64_t>(elements.size()) * 8)));
      if (!elements.empty())
        if (Status written =
                device().memory().write(*state.blocks[number], 0, std::as_bytes(std::span(elements)));
            !written.ok()) {
          state.blocks[number] = {};  // the next run must not take it for one that is filled
          return written.error();
        }
    }
    return device().address(*state.blocks[number]).at;
  }
  // The address of working memory of the step, which is kept under that number.
  Result<uint64_t> scratch(size_t number, int64_t bytes) const {
    if (number >= state.blocks.size() || state.blocks[number] == nullptr)
      RETURN_IF_ERROR(reserve(number, bytes));
    return device().address(*state.blocks[number]).at;
  }

 private:
  Status reserve(size_t number, int64_t bytes) const {
    if (number >= state.blocks.size()) state.blocks.resize(number + 1);
    ASSIGN_OR_RETURN(state.blocks[number], device().memory().allocate(bytes));
    return Status();
  }
};

using compile::axes_named, compile::axes_without, compile::count_of;

// The routine of an op.
using StepRoutine = Status (*)(const StepCall&);

// The loops over these axes with the strides of a view; an axis that the view lacks has stride 0. Axes of
// size 1 are left out, and neighbouring axes that one loop can cover are joined.
args::Axes axes_over(const std::vector<ir::Axis>& axes, const compile::View& view);
// The same for given strides.
args::Axes axes_with(const std::vector<ir::Axis>& axes, std::vector<int64_t> strides);
args::Scalar scalar_of(const DeviceArray& integer);
int64_t type_number(ir::DType dtype);
// 0 where the array has no such axis.
int64_t stride_along(const DeviceArray& a, const std::string& axis);

// Fills args.leaves, and args.leaf_ends with the address of table `table` of the step. Error: kUnsupported
// for more leaves than a kernel holds.
template <typename Args>
Status set_leaf_ends(const StepCall& call, size_t table, const ir::Axis& axis, Args& args) {
  args.leaves = call.leaves.count(axis.name);
  if (args.leaves > args::MOST_LEAVES)
    return unsupported(
        fmt::format("{}: {} leaves of {}; a kernel on a GPU takes {}: choose fewer in numerics.leaves",
                    call.place, args.leaves, axis.name, +args::MOST_LEAVES));
  ASSIGN_OR_RETURN(args.leaf_ends,
                   call.table(table, [&] { return numerics::leaf_ends(axis.name, axis.size, args.leaves); }));
  return Status();
}

// Fills args.segments, levels and counts. Error: kUnsupported for more leaves than a kernel holds.
template <typename Args>
Status set_leaves(const StepCall& call, const compile::Contraction& contraction, Args& args) {
  const std::vector<int64_t>& counts = contraction.tree_counts;
  if (contraction.segment_ends.size() > args::MOST_LEAVES || counts.size() > args::MOST_LEVELS)
    return unsupported(fmt::format(
        "{}: {} leaves on {} axes; a kernel on a GPU takes {} on {}: choose fewer in numerics.leaves",
        call.place, contraction.segment_ends.size(), counts.size(), +args::MOST_LEAVES, +args::MOST_LEVELS));
  args.segments = static_cast<int64_t>(contraction.segment_ends.size());
  args.levels = static_cast<int64_t>(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) args.counts[i] = counts[i];
  return Status();
}

}  // namespace ostro::cuda
