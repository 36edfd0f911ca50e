// A trained model out of a checkpoint, with all it takes to use it: its own configuration and its tokenizer.
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
  int64_t step = 0;  // steps that made them
  std::string path;  // of the checkpoint; "init" for initial ones
  std::string name;  // of the whole state, optimizer included; empty for initial ones
};

// What `where` may be, for --help.
inline constexpr const char* kWhereHelp = "a checkpoint, or a run (its newest checkpoint)";
inline constexpr const char* kWhereOrInitHelp =
    "a checkpoint, a run (its newest checkpoint), or init: the initial parameters of the config's seed";

// Loads the parameters for a model. `where` is a checkpoint's directory or a run's: then the newest
// checkpoint that is whole, damaged ones passed over with a warning. A checkpoint of other shapes is
// ErrorCode::kInvalidArgument and names the tensor.
Result<Parameters> load_parameters(io::FileSystem& fs, const std::string& where,
                                   const models::ModelFunctions& model);
// The same, or the parameters of step 0 when `where` is "init". Warns when the checkpoint was made with other
// options of the model than the config has.
Result<Parameters> load_or_init(io::FileSystem& fs, const std::string& where,
                                const train::TrainConfig& config, const models::ModelFunctions& model,
                                runtime::Engine& engine);

struct LoadedModel {
  train::TrainConfig config;  // as the checkpoint's manifest has it
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::string tokenizer_path;  // where it was read
  models::ModelFunctions functions;
  Parameters parameters;
};

// Everything from one checkpoint or run. The tokenizer is the file `tokenizer_path`, or when that is empty
// the run's copy; a checkpoint outside its run (RUN/checkpoints/step-*) needs the path.
Result<LoadedModel> load_model(io::FileSystem& fs, const std::string& where,
                               const std::string& tokenizer_path, train::ModelChoices models);

}  // namespace ostro::eval
