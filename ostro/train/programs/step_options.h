// Compile options of a step's programs. Training, planning and memory estimates all use these.
#pragma once

#include <cstddef>
#include <string>

#include "ostro/runtime/engine.h"

namespace ostro::train {

// For the leaf program. Parameters are not donated: the next leaf reads them again.
runtime::CompileOptions leaf_options(const std::string& remat);
// For the update program of n parameters. The old parameters, moments and gradients are donated: nothing
// reads them after the update.
runtime::CompileOptions update_options(size_t n);
// For add_program over n arrays. Each sum overwrites the first of its two inputs.
runtime::CompileOptions add_options(size_t n);

}  // namespace ostro::train
