// ConfiguredModel: the model and the data of a configuration, opened outside of a run. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ostro/context/context.h"
#include "ostro/convert/import/import_hf.h"
#include "ostro/train/step/batches.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::convert {

struct ConfiguredModel {
  train::TrainConfig config;
  std::unique_ptr<runtime::Engine> engine;
  train::DataAccess data;  // pairs have their reference
  models::ModelFunctions model;
  std::optional<BorrowedImport> beginning;  // the checkpoint that trainer.initialize_from names, if imported
  trained::Parameters parameters;
};

// Opens the data, building it when it is missing, and loads the parameters. `checkpoint` is a checkpoint, a
// run, or "init" (trained::load_or_init). Errors: those of the data and of the checkpoint.
Result<ConfiguredModel> open_configured(const Context& context, train::TrainConfig config,
                                        const std::string& checkpoint, const data::BuildSettings& settings,
                                        trained::Trust trust);

}  // namespace ostro::convert
