// Regular operands: which of the tiles for them takes a product.
//
// An operand is regular when its contracted axes join to one stride, and when 16 bytes lie together and
// aligned everywhere, along the contracted axis or along the others. That is most products of a model. The
// tiles read it without tables along k (products/strided.cuh). Pure functions of a step; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/cuda/steps/step_call.h"

namespace ostro::cuda {

// The axes of a dot: those of both operands and the result, of a and the result, of b and the result, and
// those that are summed.
struct DotAxes {
  std::vector<ir::Axis> batch, m, n, k;
};

// A launch of one kernel of a file of device text.
struct TileLaunch {
  std::string file, kernel;
  gpu::LaunchShape shape;
};

// The launch that makes call.out[0], for `args` filled for the plain kernels; sets their a_step and b_step.
// Nothing when an operand is not regular, has another dtype than the first, or is summed in leaves.
std::optional<TileLaunch> strided_launch(const StepCall& call, const DotAxes& axes, args::DotArgs& args);

}  // namespace ostro::cuda
