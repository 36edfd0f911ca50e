// Loads a trained model from a checkpoint, together with its configuration and its tokenizer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/runtime/engine.h"
#include "ostro/tokenizer/model/tokenizer.h"
#include "ostro/train/options/config.h"

namespace ostro::trained {

// Parameters in the order of the model's paths.
struct Parameters {
  std::vector<runtime::Buffer> values;
  int64_t step = 0;  // steps that made them
  std::string path;  // directory of the checkpoint; "init" for initial parameters
  std::string name;  // of the whole state, optimizer included; empty for initial ones
};

// What `where` may be, and the flag for Trust::kUnchecked, for --help.
inline constexpr const char* kWhereHelp = "a checkpoint, or a run (its newest checkpoint)";
inline constexpr const char* kWhereOrInitHelp =
    "a checkpoint, a run (its newest checkpoint), or init: the initial parameters of the config's seed";
inline constexpr const char* kUncheckedHelp =
    "take a checkpoint that is not what the chain of its run says; of a run, the newest that is whole";

enum class Trust {
  kChain,     // a checkpoint inside a run must be what the run's chain says (audit/witness.h)
  kUnchecked  // its own hashes are enough
};
inline Trust trust(bool unchecked) { return unchecked ? Trust::kUnchecked : Trust::kChain; }

// Loads the parameters for a model. `where` is a checkpoint's directory, a run's (its newest checkpoint), or
// "init" for those of step 0. A checkpoint that is damaged or not what the chain says, and a run whose newest
// one is missing, are errors; where no chain lies above it, a warning says so. With kUnchecked, or without a
// chain, the newest whole checkpoint of a run is taken, damaged ones passed over with a warning. A checkpoint
// of other shapes is ErrorCode::kInvalidArgument and names the tensor. Warns when it was made with other
// options of the model than the config has.
Result<Parameters> load_or_init(io::FileSystem& fs, const std::string& where,
                                const train::TrainConfig& config, const models::ModelFunctions& model,
                                runtime::Engine& engine, Trust trust);

// Says in the config's model what only the checkpoint at `where` (as load_or_init takes it) knows: that
// matrices are int8, which a program that reads them has to know. Nothing for other checkpoints, and where
// none can be read: what reads it then has the error.
void take_stored_matrices(io::FileSystem& fs, const std::string& where, train::TrainConfig& config);

struct LoadedModel {
  train::TrainConfig config;  // as the checkpoint's manifest has it
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::string tokenizer_path;  // where it was read
  models::ModelFunctions functions;
  Parameters parameters;
};

// Everything from one checkpoint or run, as load_or_init takes it. The tokenizer is the file
// `tokenizer_path`, or when that is empty the run's copy, which must be the one that the chain names; a
// checkpoint outside its run (RUN/checkpoints/step-*) needs the path.
Result<LoadedModel> load_model(io::FileSystem& fs, const std::string& where,
                               const std::string& tokenizer_path, const train::ModelChoices& models,
                               Trust trust);

}  // namespace ostro::trained
