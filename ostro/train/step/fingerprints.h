// What the chain records of a step (numerics.md N14, N15).
#pragma once

#include <string>
#include <vector>

#include "ostro/train/record/chain_entry.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// SHA-256 over the arrays of a batch: for each "<name> <type>\n" and the little-endian elements.
std::string batch_fingerprint(const BatchArrays& batch, const std::vector<std::string>& names);

// SHA-256 over one line per parameter "<path> <type> <lane 0> <lane 1>\n" (lanes as 16 hexadecimal digits),
// then
// "<loss> <gradient norm> <weight>\n" as hex floats.
std::string state_fingerprint(const StepResult& result, const std::vector<std::string>& paths,
                              const std::vector<ir::Shape>& shapes);

// The chain's entry of a step that has just been run.
StepEntry step_entry(int64_t step, const StepResult& result, const std::string& batch,
                     const std::vector<std::string>& paths, const std::vector<ir::Shape>& shapes);

}  // namespace ostro::train
