// TrainConfig: the whole configuration of a run, from a YAML file, overrides and defaults. Errors name the
// key. A value type: copies are independent.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/config/config.h"
#include "ostro/data/options/options.h"
#include "ostro/models/decoder/decoder_options.h"
#include "ostro/models/model_choices.h"
#include "ostro/models/model_options.h"
#include "ostro/optim/options.h"
#include "ostro/train/options/objective_options.h"
#include "ostro/train/options/options.h"
#include "ostro/train/options/tuning_options.h"

namespace ostro::train {

// The options of a run. A value type. It holds default values until a file is read, and is complete after
// resolve().
struct TrainConfig {
  data::DataOptions data;
  config::OpenSection model;  // holds a models::ModelOptions
  AdapterOptions adapter;
  ObjectiveOptions objective;
  optim::OptimizerOptions optimizer;
  TrainerOptions trainer;
  NumericsOptions numerics;
  ChainOptions chain;

  // `models` are the choices of model.type, each a ModelOptionsOf<T>. The first one is the default.
  explicit TrainConfig(models::ModelChoices models = models::builtin_models()) : model(std::move(models)) {}

  void visit_options(config::OptionTable& table);

  const models::ModelOptions& model_options() const;
  models::ModelOptions& model_options();

  // Positions of one example: of a preference pair, those of both texts.
  int64_t example_positions() const;

  // Fills in the values that are computed from others (head_dim, leaf_examples, the order of leaves). Checks
  // every value, and every relation between values; all errors are returned as one (config/mistakes.h). A
  // second call changes nothing.
  Status resolve();

  // Checks that numerics.leaf_examples divides every batch size that is used from `from_step` on. Call it
  // after resolve(). resolve() itself checks only the last batch size: a run may be amended to a leaf size
  // that does not divide the batch sizes of its earlier steps.
  Status check_leaf_examples(int64_t from_step) const;

 private:
  Status resolve_leaves();
  Status check_axes_of_model();
};

// Reads a file, which may be in an object store (s3://), applies the overrides and calls resolve(). A run's
// config.yaml is what the run has in force (chain::config_in_force).
Result<TrainConfig> load_train_config(const std::string& path, std::span<const config::Override> overrides,
                                      models::ModelChoices models = models::builtin_models());

// As load_train_config, from YAML text in memory. Error messages use `name` in place of the file's path.
Result<TrainConfig> parse_train_config(const std::string& yaml, const std::string& name,
                                       models::ModelChoices models);

// Checks that a run can be spread over `workers` workers: the mesh, and the leaves of what it splits. Errors:
// kInvalidArgument with the key and a value that works.
Status check_workers(const TrainConfig& config, int64_t workers);
// One warning for each mesh axis of more than one worker that splits nothing: its workers do the same work
// twice.
std::vector<std::string> idle_mesh_axes(const TrainConfig& config, int64_t workers);

// The canonical form of a config as chain::canonical_object writes it. The genesis entry holds this text.
std::string canonical_text(const TrainConfig& config);

// The run directory: log_dir/id, in an object store without empty and "." components.
std::string run_directory(const TrainConfig& config);

}  // namespace ostro::train
