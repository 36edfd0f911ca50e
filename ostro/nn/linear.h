// Linear, Embedding and RMS norm: structs of parameters with a call operator.
#pragma once

#include <string>
#include <vector>

#include "ostro/trace/ops.h"
#include "ostro/trace/tree.h"

namespace ostro::nn {

// Several maps in one weight: along `axis` it has parts of these sizes, one for each map. Their results lie
// side by side. It matters to optimizers alone. No axis: one map.
struct Fused {
  std::string axis;
  std::vector<int64_t> sizes;
};

// y = x w (+ bias), contracted over the named input axes (in this order: it is part of the result).
struct Linear {
  Array weight;  // [in..., out...]
  Array bias;    // [out...] or empty
  Axes in;
  Fused fused = {};
  OSTRO_FIELDS(weight, bias)
  OSTRO_STATICS(in)

  // x is cast to the weight's compute dtype; the result has that dtype too.
  Array operator()(const Array& x, Loc loc = Loc::current()) const;
};

// x cast to the dtype in which the parameter is read.
Array cast_like(const Array& x, const Array& parameter, Loc loc = Loc::current());

struct Embedding {
  Array weight;  // [vocab, embed]
  OSTRO_FIELDS(weight)

  // Looks up rows of the table: ids [...] i32 -> [..., embed] in the compute dtype.
  Array operator()(const Array& ids, Loc loc = Loc::current()) const {
    return gather(weight, "vocab", ids, loc);
  }
  // The tied head: x [..., embed] -> f32 logits [..., vocab].
  Array attend(const Array& x, Loc loc = Loc::current()) const {
    return dot(cast_like(x, weight, loc), weight, "embed", DType::f32, loc);
  }
};

// x * rsqrt(mean(x * x) + epsilon) * weight over one axis, in f32 (numerics.md N4).
struct RmsNorm {
  Array weight;  // [axis]
  double epsilon = 1e-5;
  std::string axis = "embed";
  OSTRO_FIELDS(weight)
  OSTRO_STATICS(epsilon, axis)

  Array operator()(const Array& x, Loc loc = Loc::current()) const;
};

}  // namespace ostro::nn
