// peft_model, described_peft: a model with an adapter in PEFT's format, in memory.
#pragma once

#include <string>
#include <vector>

#include "ostro/hf/adapter.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::convert {

struct PeftModel {
  train::TrainConfig config;
  models::ModelFunctions functions;
  std::vector<runtime::Buffer> values;  // in the order of functions.paths; those of the base are its own
};

// The model `base` with the adapter of `files`. The configuration is `config` with the base's model and the
// adapter. Errors: those of take_lora; the base is no decoder, has an adapter already, or holds other
// parameters than those that the adapter names by their hash.
Result<PeftModel> peft_model(const hf::LoraFiles& files, const trained::LoadedModel& base,
                             const train::TrainConfig& config,
                             train::ModelUse use = train::ModelUse::kTraining);

// The same without values, of a base without them (trained::describe_model): what the adapter's weights and
// those of the base say is not checked.
Result<PeftModel> described_peft(const hf::LoraFiles& files, const trained::LoadedModel& base,
                                 const train::TrainConfig& config, train::ModelUse use);

}  // namespace ostro::convert
