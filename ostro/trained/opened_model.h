// OpenedModel, open_model: a trained model whose parameters stay in their checkpoint and are read in parts,
// for models that are larger than memory.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ostro/base/progress.h"
#include "ostro/checkpoint/part_reader.h"
#include "ostro/models/layer_functions.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::trained {

struct OpenedModel {
  LoadedModel model;              // no values; parameters.path, step and name as load_model would set them
  models::LayerFunctions layers;  // functions of the parameters, in the order of model.functions.paths
  checkpoint::PartReader reader;  // reads the same parameters
};

// The model's parts, of parameters in the order of model.functions.paths. Nothing: it is no decoder.
// `adapters`: the parts of so many models at once that differ in their adapters alone (nn::kAdaptersAxis).
std::optional<models::LayerFunctions> layers_of(const LoadedModel& model, int64_t adapters = 0);

// Opens a model as load_model does, but reads no file of a parameter. `check`, if given, may read them; its
// error counts as damage of the checkpoint, so an older one may be taken as in load_model. Errors:
// kUnsupported for a model that cannot run layer by layer, and for a checkpoint for which the chain has only
// a fingerprint and no name, because comparing it needs all parameters in memory.
Result<OpenedModel> open_model(io::FileSystem& fs, const std::string& where,
                               const std::string& tokenizer_path, const models::ModelChoices& models,
                               Trust trust, const std::function<Status(const OpenedModel&)>& check = {},
                               const UseOptions& use = {});

// A model without its parameters, whose files need not be there.
struct DescribedModel {
  LoadedModel model;                // no values; parameters.path, step and name as load_model would set them
  std::vector<std::string> arrays;  // the checkpoint's array that load_model would read for each parameter
};

// Describes the model of a checkpoint by its manifest, its run's chain and its tokenizer. Errors: as
// load_model, but for the parameters' files. `tokenizer_path` and `use`: as there.
Result<DescribedModel> describe_model(io::FileSystem& fs, const std::string& where,
                                      const models::ModelChoices& models, Trust trust,
                                      const std::string& tokenizer_path = "", const UseOptions& use = {});

// Runs PartReader::check on all weights; `progress` shows "checking weights".
Status check_weights(const checkpoint::PartReader& reader, Progress& progress);

}  // namespace ostro::trained
