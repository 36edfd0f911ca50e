#include "ostro/train/programs/run_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ostro/config/glob.h"
#include "ostro/models/frozen.h"
#include "ostro/train/programs/programs.h"

namespace ostro::train {
namespace {

bool matches_any(const std::vector<std::string>& globs, const std::string& path) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return config::glob_matches(glob, path); });
}

// `names`: what a glob of the list may match, several names for one thing.
Status check_globs(const char* key, const std::vector<std::string>& globs,
                   const std::vector<std::string>& names) {
  for (const std::string& glob : globs)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return config::glob_matches(glob, name); }))
      return config::option_error(key, fmt::format("\"{}\" matches nothing of the model, which has {}", glob,
                                                   fmt::join(names, ", ")));
  return Status();
}

bool is_trained(const TrainConfig& config, const std::string& path) {
  if (lora_spec(config.adapter)) return nn::is_adapter(path);
  if (config.trainer.train_only) return matches_any(*config.trainer.train_only, path);
  return !matches_any(config.trainer.freeze, path);
}

}  // namespace

models::ModelFunctions run_model(const TrainConfig& config, int64_t vocab, ModelUse use) {
  const nn::Precision compute = precision(config);
  const auto lora = lora_spec(config.adapter);
  const models::ModelOptions& model = config.model_options();
  // The loss of pairs is of log-probabilities.
  const bool whole = use == ModelUse::kTraining && dpo_objective(config.objective) == nullptr;
  return models::train_only(
      whole ? model.functions(vocab, compute, lora) : model.evaluation_functions(vocab, compute, lora),
      [&](const std::string& path) { return is_trained(config, path); }, compute.dtype);
}

models::ModelFunctions base_model(const TrainConfig& config, int64_t vocab, ModelUse use) {
  const nn::Precision compute = precision(config);
  const models::ModelOptions& model = config.model_options();
  return use == ModelUse::kTraining ? model.functions(vocab, compute)
                                    : model.evaluation_functions(vocab, compute);
}

Status check_run_model(const TrainConfig& config, const models::ModelFunctions& model) {
  if (const auto* lora = std::get_if<LoraOptions>(&config.adapter); lora && lora->target_modules) {
    std::vector<std::string> names, paths;
    for (const nn::AdaptedMatrix& m : model.matrices) {
      if (std::find(names.begin(), names.end(), m.name) == names.end()) names.push_back(m.name);
      paths.push_back(m.path());
    }
    names.insert(names.end(), paths.begin(), paths.end());
    RETURN_IF_ERROR(check_globs("adapter.target_modules", *lora->target_modules, names));
  }
  RETURN_IF_ERROR(check_globs("trainer.freeze", config.trainer.freeze, model.paths));
  if (config.trainer.train_only)
    RETURN_IF_ERROR(check_globs("trainer.train_only", *config.trainer.train_only, model.paths));
  if (model.trained() > 0) return Status();
  if (lora_spec(config.adapter))
    return config::option_error("adapter.type", "the model has no matrix that could have an adapter");
  return config::option_error(config.trainer.train_only ? "trainer.train_only" : "trainer.freeze",
                              "nothing of the model is left to train");
}

Status check_vocabulary(const models::ModelFunctions& model, int64_t tokens) {
  for (const ir::Shape& shape : model.shapes) {
    if (shape.find("vocab") < 0) continue;
    if (const int64_t rows = shape.size_of("vocab"); rows < tokens)
      return config::option_error(
          "model.vocab_size", fmt::format("{} rows, but the tokenizer (data.tokenizer) has {} tokens; use at "
                                          "least {}, or null for exactly these",
                                          rows, tokens, tokens));
  }
  return Status();
}

}  // namespace ostro::train
