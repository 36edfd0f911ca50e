// trunc_normal, key_of_path: initial values of parameters. Each is drawn from a key that depends on the
// parameter's path. So adding or reordering parameters does not change the others (numerics.md N12). Called
// while tracing. `key`: u32 [word:2].
#pragma once

#include <string>
#include <vector>

#include "ostro/trace/ops.h"

namespace ostro::nn {

// The key of a path "model/layers/attn/qkv/weight": one fold_in per component.
Array key_of_path(const Array& key, const std::string& path);

// Returns std times a standard normal that is cut at three standard deviations, f32, with these axes. The
// parameters of all layers are one draw, with the layer axis outermost.
Array trunc_normal(const Array& key, const std::string& path, const std::vector<Axis>& axes, double std);

}  // namespace ostro::nn
