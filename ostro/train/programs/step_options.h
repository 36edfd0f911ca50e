// How the programs of a step are compiled, for all who compile, plan or estimate them.
#pragma once

#include <cstddef>
#include <string>

#include "ostro/runtime/engine.h"

namespace ostro::train {

// The leaf's: parameters stay, for the next leaf needs them.
runtime::CompileOptions leaf_options(const std::string& remat);
// The update's, of n parameters: old parameters, moments and gradients are not needed behind it.
runtime::CompileOptions update_options(size_t n);
// Of add_program for n arrays: sums stand where the first addends were.
runtime::CompileOptions add_options(size_t n);

}  // namespace ostro::train
