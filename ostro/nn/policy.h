// compute: mixed precision. Parameters are held in f32 and read in a compute dtype. Those that are not
// trained may be held in the compute dtype.
#pragma once

#include "ostro/trace/tree.h"

namespace ostro::nn {

// Returns the model with every leaf that is f32, or has the compute dtype, tagged with the compute dtype. The
// first op that reads a tagged leaf casts it (one `use` per program or loop body). Training, evaluation and
// generation all call this. Leaves that need no cast are tagged too, because on a mesh `use` also gathers the
// parameter.
template <typename Model>
Model compute(const Model& model, DType dtype) {
  return tree_map(model, [&](const std::string&, const Array& a) {
    return a.dtype() == DType::f32 || a.dtype() == dtype ? a.tagged(dtype) : a;
  });
}

}  // namespace ostro::nn
