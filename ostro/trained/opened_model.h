// A trained model whose parameters stay in their checkpoint, and are read in parts: one that is larger than
// memory.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ostro/checkpoint/part_reader.h"
#include "ostro/models/layer_functions.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::trained {

struct OpenedModel {
  LoadedModel model;              // no values; parameters.path, step and name as load_model would set them
  models::LayerFunctions layers;  // of the parameters in the order of model.functions.paths
  checkpoint::PartReader reader;  // of the same
};

// As load_model, but no file of a parameter is read: `check`, when it is given, may do that. An error of it
// is one of the checkpoint, so an older one may be taken as load_model says. Errors: kUnsupported for a model
// that cannot run layer by layer, and for a checkpoint of which the chain has only a fingerprint, no name:
// all parameters at a time would be needed.
Result<OpenedModel> open_model(io::FileSystem& fs, const std::string& where,
                               const std::string& tokenizer_path, const train::ModelChoices& models,
                               Trust trust, const std::function<Status(const OpenedModel&)>& check = {});

}  // namespace ostro::trained
