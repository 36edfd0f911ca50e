// The whole configuration of a run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ostro/config/config.h"
#include "ostro/data/options/options.h"
#include "ostro/models/llama_options.h"
#include "ostro/models/model_options.h"
#include "ostro/optim/options.h"
#include "ostro/train/options/options.h"

namespace ostro::train {

using ModelChoices = std::vector<std::shared_ptr<const config::SectionValue>>;

// The models of this repository, for `model.type`.
ModelChoices builtin_models();

// A value type. Default values until read; complete after resolve().
struct TrainConfig {
  data::DataOptions data;
  config::OpenSection model;  // of models::ModelOptions
  optim::OptimizerOptions optimizer;
  TrainerOptions trainer;
  NumericsOptions numerics;
  ChainOptions chain;

  // `models` are the choices of model.type: ModelOptionsOf<T> each, the first is the default.
  explicit TrainConfig(ModelChoices models = builtin_models()) : model(std::move(models)) {}

  void visit_options(config::OptionTable& table);

  const models::ModelOptions& model_options() const;
  models::ModelOptions& model_options();

  // Fills in what follows from other values (head_dim, leaf_examples, the order of leaves) and checks every
  // value and every relation between them. Changes nothing when called again.
  Status resolve();

  // Whether, once resolved, numerics.leaf_examples divides every batch size from that step on. resolve() asks
  // it of the last size alone: a run can be amended to leaves that the batches before do not consist of.
  Status check_leaf_examples(int64_t from_step) const;
};

// Reads a file, applies overrides and resolves.
Result<TrainConfig> load_train_config(const std::string& path, std::span<const config::Override> overrides,
                                      ModelChoices models = builtin_models());

// The same for text in memory; `name` stands for the file in messages.
Result<TrainConfig> parse_train_config(const std::string& yaml, const std::string& name, ModelChoices models);

// The run directory: log_dir/id.
std::string run_directory(const TrainConfig& config);

}  // namespace ostro::train
