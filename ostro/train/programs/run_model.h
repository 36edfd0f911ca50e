// run_model: the model of a run: that of its config, with adapters, and with some parameters frozen.
//
// The functions that make a model trace its initialisation to learn the shapes of its parameters, so call
// them outside any trace. They take a config that passed its own checks. Any thread may call them.
#pragma once

#include "ostro/models/model_functions.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

// The use of a model. kEvaluation: its losses lack the terms that only training adds.
enum class ModelUse { kTraining, kEvaluation };

// Returns the model of a run for a vocabulary of `vocab` tokens. A model whose objective is not next_token
// lacks the terms that only training adds, too.
models::ModelFunctions run_model(const TrainConfig& config, int64_t vocab,
                                 ModelUse use = ModelUse::kTraining);

// Returns the model of a run before it got adapters, with all of its parameters trained.
models::ModelFunctions base_model(const TrainConfig& config, int64_t vocab,
                                  ModelUse use = ModelUse::kEvaluation);

// Checks that the model of a run has something to train. Errors: a glob of adapter.target_modules,
// trainer.freeze or trainer.train_only that matches nothing (with the names that it could match), and a model
// of which no parameter is trained.
Status check_run_model(const TrainConfig& config, const models::ModelFunctions& model);

// Checks that a model's vocabulary has a row for each of the tokenizer's `tokens` tokens. Error:
// model.vocab_size is smaller.
Status check_vocabulary(const models::ModelFunctions& model, int64_t tokens);

}  // namespace ostro::train
