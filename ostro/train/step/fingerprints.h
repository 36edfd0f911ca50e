// batch_fingerprint, state_fingerprint, step_entry: the values of a step that the chain records (numerics.md
// N14, N15). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "ostro/chain/chain.h"
#include "ostro/chain/leaves.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// SHA-256 over the arrays of a batch: for each "<name> <type>\n" and the little-endian elements.
std::string batch_fingerprint(const BatchArrays& batch, const std::vector<std::string>& names);

// "<loss> <gradient norm> <weight>" as hex floats: the values beside parameters that a step's fingerprint
// covers.
std::string measured_text(const StepResult& result);

// A parameter in a step's fingerprint.
struct ParameterPrint {
  std::string path, type;  // "model/norm", "f32[embed:64]"
  std::array<int64_t, 2> lanes;
};

// SHA-256 over one line per parameter "<path> <type> <lane 0> <lane 1>\n" (lanes as 16 hexadecimal digits),
// then measured_text and "\n".
std::string state_fingerprint(const std::vector<ParameterPrint>& parameters, const std::string& measured);

// The losses of the first `step` steps, from the chain, as optim::step_scalars needs them.
std::vector<double> losses_before(const chain::Chain& chain, int64_t step,
                                  const optim::CommonOptions& options);

// The chain's record of a leaf; `paths` are those of the parameters.
chain::LeafRecord leaf_record(int64_t number, const LeafResult& leaf, const std::vector<std::string>& paths);
// The records of all leaves of a step.
std::vector<chain::LeafRecord> leaf_records(const StepResult& result, const std::vector<std::string>& paths);

// The chain's entry of a step that has just been run.
chain::StepEntry step_entry(int64_t step, const StepResult& result, const std::string& batch,
                            const std::vector<std::string>& paths, const std::vector<ir::Shape>& shapes);

}  // namespace ostro::train
