// The model of a run: that of its config, with adapters, and with some parameters frozen.
#pragma once

#include "ostro/models/model_functions.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

// kEvaluation: its losses have no terms that only training adds.
enum class ModelUse { kTraining, kEvaluation };

// For a vocabulary. Call outside any trace.
models::ModelFunctions run_model(const TrainConfig& config, int64_t vocab,
                                 ModelUse use = ModelUse::kTraining);

// The model of a run before it got adapters, with all of its parameters trained.
models::ModelFunctions base_model(const TrainConfig& config, int64_t vocab,
                                  ModelUse use = ModelUse::kEvaluation);

// Errors: a glob of adapter.target_modules, trainer.freeze or trainer.train_only that matches nothing (names
// what there is), nothing is trained.
Status check_run_model(const TrainConfig& config, const models::ModelFunctions& model);

// Checks that a model's vocabulary has rows for the tokenizer's `tokens`. Error: model.vocab_size is below
// them.
Status check_vocabulary(const models::ModelFunctions& model, int64_t tokens);

}  // namespace ostro::train
