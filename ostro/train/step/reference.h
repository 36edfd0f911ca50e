// Reference: the log-probabilities that the weights at the beginning of a run give to both answers of every
// preference pair, of both splits. They are computed once, by the run's program `reference`, and kept in the
// run's directory; the genesis has their hash. So training needs no second model.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ostro/batches/loader/data_set.h"
#include "ostro/chain/chain_entry.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

// A file of the run directory: safetensors with a tensor f64 [pairs, 2] for each split of each component,
// named "<component>/train" and "<component>/validation".
inline constexpr const char* kReferenceFile = "reference.safetensors";

struct Reference {
  // By component and split; pairs in the order of the store, two values each.
  std::vector<std::array<std::shared_ptr<const batches::PairScores>, 2>> scores;
  // SHA-256 over the splits: "<component>/<split> <pairs>\n" and the values, f64 little-endian.
  std::string hash;
};

// Runs the program `reference` (CanonicalPrograms) over all pairs. `parameters` are the initial ones. The
// values do not depend on the program's number of rows (numerics.md N16).
Result<Reference> compute_reference(const ir::Program& program, runtime::Engine& engine,
                                    const std::vector<runtime::Buffer>& parameters, const TrainConfig& config,
                                    const batches::DataSet& stores);

// Writes the reference into the run directory. Errors: those of writing.
Status write_reference(io::FileSystem& fs, const std::string& run_directory, const batches::DataSet& stores,
                       const Reference& reference);
// Reads the reference with this hash. Errors: kNotFound when the file is missing; kCorrupt when its pairs are
// not those of the stores, or its hash is another one.
Result<Reference> read_reference(io::FileSystem& fs, const std::string& run_directory,
                                 const batches::DataSet& stores, const std::string& hash);

// Returns the stores with the reference of the run in that directory; unchanged when the run has none.
// Errors: those of read_reference; the run was trained on other stores.
Result<std::shared_ptr<const batches::DataSet>> with_reference_of(
    io::FileSystem& fs, const std::string& run_directory, std::shared_ptr<const batches::DataSet> stores);

}  // namespace ostro::train
