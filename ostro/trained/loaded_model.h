// load_model, load_or_init: load a trained model from a checkpoint, together with its configuration and its
// tokenizer.
#pragma once

#include <memory>
#include <optional>
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
  std::string name;  // of the whole state, optimizer included; empty for initial parameters
};

// Texts for --help: the values of `where`, and the flag for Trust::kUnchecked.
inline constexpr const char* kWhereHelp = "a checkpoint, or a run (its newest checkpoint)";
inline constexpr const char* kWhereOrInitHelp =
    "a checkpoint, a run (its newest checkpoint), or init: the initial parameters of the config's seed";
inline constexpr const char* kUncheckedHelp =
    "take a checkpoint that is not what the chain of its run says; of a run, the newest that is whole";

enum class Trust {
  kChain,     // a checkpoint inside a run must be what the run's chain says (audit/record/witness.h)
  kUnchecked  // its own hashes are enough
};
inline Trust trust(bool unchecked) { return unchecked ? Trust::kUnchecked : Trust::kChain; }

// Loads the parameters for a model. `where` is a checkpoint's directory, a run's (its newest checkpoint), or
// "init" for those of step 0. Errors: a checkpoint that is damaged or differs from the chain; a run without
// its newest checkpoint; kInvalidArgument, with the tensor, for a checkpoint of other shapes. With
// kUnchecked, or without a chain (a warning says so), the newest whole checkpoint of a run is taken, and
// damaged ones are passed over with a warning. Also warns when the checkpoint was made with other options of
// the model than the config has.
Result<Parameters> load_or_init(io::FileSystem& fs, const std::string& where,
                                const train::TrainConfig& config, const models::ModelFunctions& model,
                                runtime::Engine& engine, Trust trust);

// If the checkpoint at `where` (as in load_or_init) stores its matrices as int8, sets that option in the
// model of `config`: programs that read such matrices need it. Does nothing for other checkpoints. Does
// nothing either when the checkpoint cannot be read; loading it later gives the error.
void take_stored_matrices(io::FileSystem& fs, const std::string& where, train::TrainConfig& config);

// The contexts that a model can be opened with (UseOptions::seq_len), and that a receipt can name.
inline constexpr int64_t kLeastContext = 2, kMostContext = int64_t{1} << 31;

// The options of a command that replace those of the configuration in the checkpoint.
struct UseOptions {
  std::string mp;                  // in place of trainer.mp, in any of its spellings; empty: as in training
  std::optional<int64_t> seq_len;  // model.seq_len; a rope that depends on the length changes with it
  // The model's layers alone read the parameters (models::LayerFunctions), and nothing writes them. f32 ones
  // that they read in bf16 are rounded at once, so values may have another dtype than the functions' shapes;
  // large ones may be the checkpoint's files (io/files/leased_region.h). No bit of an answer changes.
  bool as_read = false;
  bool warns = true;  // of a seq_len that is more than the model's own
};
// Texts for --help of the two.
inline constexpr const char* kUseMpHelp =
    "the precision of products, f32, bfloat16, int8, bf16_tc16 or c=int8,a=int8, as trainer.mp takes it "
    "(default: as in training)";
inline constexpr const char* kUseSeqLenHelp =
    "the context, 2 to 2147483648, instead of model.seq_len; a rope that depends on it (longrope, dynamic) "
    "is that of texts "
    "of N tokens";

// A model with its parameters in memory.
struct LoadedModel {
  train::TrainConfig config;  // as the checkpoint's manifest has it
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::string tokenizer_path;  // where it was read
  models::ModelFunctions functions;
  Parameters parameters;
  std::string other_mp =
      {};  // the word of the precision (train::precision_word), if it is not that of training
};

// Loads everything from one checkpoint or run (`where` as in load_or_init). The tokenizer is the file
// `tokenizer_path`, or when that is empty the run's copy, which must be the one that the chain names; a
// checkpoint outside its run (RUN/checkpoints/step-*) needs the path. Errors of `use` name the option.
Result<LoadedModel> load_model(io::FileSystem& fs, const std::string& where,
                               const std::string& tokenizer_path, const models::ModelChoices& models,
                               Trust trust, const UseOptions& use = {});

}  // namespace ostro::trained
