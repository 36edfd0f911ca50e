// Loads a trained model from a checkpoint, together with its configuration and its tokenizer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/runtime/engine.h"
#include "ostro/tokenizer/model/tokenizer.h"
#include "ostro/train/options/config.h"

namespace ostro::eval {

// Parameters in the order of the model's paths.
struct Parameters {
  std::vector<runtime::Buffer> values;
  int64_t step = 0;  // number of training steps
  std::string path;  // directory of the checkpoint; "init" for initial parameters
  std::string name;  // name (hash) of the whole state, with the optimizer's; empty for initial parameters
};

// Help texts: what the user may give as `where`.
inline constexpr const char* kWhereHelp = "a checkpoint, or a run (its newest checkpoint)";
inline constexpr const char* kWhereOrInitHelp =
    "a checkpoint, a run (its newest checkpoint), or init: the initial parameters of the config's seed";

// Loads the parameters of a model. `where` is the directory of a checkpoint or of a run. For a run, the
// newest undamaged checkpoint is taken; damaged ones are skipped with a warning. A checkpoint with other
// shapes is kInvalidArgument, and the error names the tensor.
Result<Parameters> load_parameters(io::FileSystem& fs, const std::string& where,
                                   const models::ModelFunctions& model);
// Like load_parameters, but if `where` is "init" it gives the parameters of step 0. It warns if the
// checkpoint was made with other model options than the config has.
Result<Parameters> load_or_init(io::FileSystem& fs, const std::string& where,
                                const train::TrainConfig& config, const models::ModelFunctions& model,
                                runtime::Engine& engine);

struct LoadedModel {
  train::TrainConfig config;  // from the checkpoint's manifest
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::string tokenizer_path;  // file that the tokenizer was read from
  models::ModelFunctions functions;
  Parameters parameters;
};

// Loads everything from one checkpoint or run. An empty `tokenizer_path` means the run's copy of the
// tokenizer. A checkpoint that is not inside its run (RUN/checkpoints/step-*) needs the path.
Result<LoadedModel> load_model(io::FileSystem& fs, const std::string& where,
                               const std::string& tokenizer_path, train::ModelChoices models);

}  // namespace ostro::eval
