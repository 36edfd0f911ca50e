// Initial values of parameters: drawn from a key that folds in the parameter's path, so that adding or
// reordering parameters changes no other one (numerics.md N12).
#pragma once

#include <string>
#include <vector>

#include "ostro/trace/ops.h"

namespace ostro::nn {

// The key of a path "model/layers/attn/qkv/weight": one fold_in per component.
Array key_of_path(const Array& key, const std::string& path);

// std * a standard normal cut at three standard deviations, f32. Stacked parameters draw once, layers
// outermost.
Array trunc_normal(const Array& key, const std::string& path, const std::vector<Axis>& axes, double std);

}  // namespace ostro::nn
