// Norm: norms of activations, RMSNorm and LayerNorm.
#pragma once

#include <string>
#include <vector>

#include "ostro/trace/ops.h"
#include "ostro/trace/tree.h"

namespace ostro::nn {

// A norm over one or more axes, in f32 (numerics.md N4), with the weight over the same axes:
//   x * rsqrt(mean(x * x) + epsilon) * weight, or, `centered` (LayerNorm), of c = x - mean(x) instead of x.
// The bias, if there is one, is added at the end. Without a weight it returns x unchanged.
struct Norm {
  Array weight, bias;
  bool centered = false;
  bool one_plus = false;  // the factor is 1 + weight
  bool in_f32 = false;    // weight and bias are read in f32 whatever the compute dtype
  double epsilon = 1e-5;
  std::vector<std::string> axes = {"embed"};
  OSTRO_FIELDS(weight, bias)
  OSTRO_STATICS(centered, one_plus, in_f32, epsilon, axes)

  bool valid() const { return weight.valid(); }
  Array operator()(const Array& x, Loc loc = Loc::current()) const;
};

}  // namespace ostro::nn
