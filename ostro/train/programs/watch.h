// trainer.watch_norms: norms of single parameters, which the update program measures for the metrics.
//
// A result is named "watch/WHAT/PATH" or, where layers are stacked, "watch/WHAT/PATH[LAYER]", and is f64. It
// is the square root of the sum of squares as in a gradient norm (numerics.md N13), so no bit of it depends
// on the mesh. The functions trace ops; the state's bits do not depend on them.
#pragma once

#include <string>
#include <vector>

#include "ostro/optim/norm.h"

namespace ostro::train {

// The norms of one parameter: a scalar for each layer, or one if it has no axis "layers".
std::vector<Array> norms_of(const Array& parameter, const optim::Boxes& boxes);
// What follows "watch/" in the names of norms_of(a parameter of this shape); `what`: "grad_norm",
// "param_norm".
std::vector<std::string> norm_names(const std::string& what, const std::string& path, const ir::Shape& shape);

// The names of all watched results of an update program, in its order: those of UpdateMeasures, then those of
// UpdateReport. They are the names in metrics.jsonl.
std::vector<std::string> watch_names(const ir::Program& update);

}  // namespace ostro::train
