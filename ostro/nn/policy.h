// Mixed precision: parameters are held in f32 and read in a compute dtype.
#pragma once

#include "ostro/trace/tree.h"

namespace ostro::nn {

// Tags every f32 leaf of the model with the dtype its first reader casts it to (one `use` per program or loop
// body). Training, evaluation and generation all call it. f32 as compute dtype tags too: under a mesh `use`
// also gathers.
template <typename Model>
Model compute(const Model& model, DType dtype) {
  return tree_map(model, [&](const std::string&, const Array& a) {
    return a.dtype() == DType::f32 ? a.tagged(dtype) : a;
  });
}

}  // namespace ostro::nn
