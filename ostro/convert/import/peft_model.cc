#include "ostro/convert/import/peft_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ostro/models/decoder/decoder.h"
#include "ostro/nn/adapters.h"
#include "ostro/numerics/arrays.h"

namespace ostro::convert {
namespace {

using models::DecoderOptions;

// The base's model, with its sums cut as there, and with adapters on these matrices.
Result<train::TrainConfig> config_of(const trained::LoadedModel& base, const hf::LoraFiles& files,
                                     train::TrainConfig config, std::vector<std::string> targets) {
  config.model = base.config.model;
  config.numerics.leaves = base.config.numerics.leaves;
  train::LoraOptions lora;
  lora.rank = files.rank();
  lora.alpha = files.alpha();
  lora.use_rslora = files.config.use_rslora;
  lora.target_modules = std::move(targets);
  config.adapter = lora;
  RETURN_IF_ERROR(config.resolve());
  return config;
}

// Which matrices of the base the adapter's modules are: a model with adapters on all of them says it.
Result<std::vector<std::string>> targets_of(const trained::LoadedModel& base, const hf::LoraFiles& files,
                                            const train::TrainConfig& config,
                                            const std::vector<hf::WeightPart>& weights) {
  ASSIGN_OR_RETURN(const train::TrainConfig all, config_of(base, files, config, {"*"}));
  const models::ModelFunctions model = train::run_model(all, base.tokenizer->vocab_size());
  return hf::lora_targets(files, hf::lora_modules(weights, model.matrices, model.paths, model.shapes));
}

// The parameters, those of the base as a run with an adapter holds them, those of the adapter zero.
std::vector<runtime::Buffer> held_values(const trained::LoadedModel& base,
                                         const models::ModelFunctions& model) {
  std::vector<runtime::Buffer> out;
  for (size_t k = 0; k < model.paths.size(); ++k) {
    if (nn::is_adapter(model.paths[k])) {
      out.push_back(runtime::Buffer::zeros(model.shapes[k]));
      continue;
    }
    const runtime::Buffer& value =
        base.parameters.values[hf::parameter_of(base.functions.paths, model.paths[k])];
    out.push_back(value);
    if (value.shape() == model.shapes[k]) continue;
    out.back() = runtime::Buffer::empty(model.shapes[k]);
    if (value.shape().dtype == ir::DType::f32)  // a frozen parameter is held in bf16
      numerics::narrow(value.as<float>(), out.back().mutable_bytes());
    else
      numerics::widen(value.bytes(), out.back().mutable_bytes());
  }
  return out;
}

// Whether these are the parameters that the adapter names. Its run may have held them in the other dtype.
Result<bool> is_base(const hf::LoraFiles& files, const trained::LoadedModel& base,
                     const train::TrainConfig& config) {
  for (const char* mp : {"p=f32,c=f32", "p=f32,c=bfloat16"}) {
    train::TrainConfig other = config;
    other.trainer.mp = mp;
    RETURN_IF_ERROR(other.resolve());
    const models::ModelFunctions model = train::run_model(other, base.tokenizer->vocab_size());
    if (hf::parameters_hash(model.paths, held_values(base, model)) == files.base_hash) return true;
  }
  return false;
}

// How the family of the base names its weights.
Result<std::vector<hf::WeightPart>> weights_of(const hf::LoraFiles& files, const trained::LoadedModel& base) {
  const std::string& where = base.parameters.path;
  if (train::lora_spec(base.config.adapter))
    return invalid_argument(fmt::format("{}: has an adapter; name the base of {}", where, files.path));
  const auto* decoder =
      models::model_options_as<DecoderOptions, models::Decoder>(base.config.model_options());
  if (decoder == nullptr)
    return unsupported(
        fmt::format("{}: model.type {} is no decoder", where, base.config.model_options().type()));
  return hf::family_weights(*decoder);
}

}  // namespace

Result<PeftModel> described_peft(const hf::LoraFiles& files, const trained::LoadedModel& base,
                                 const train::TrainConfig& config, train::ModelUse use) {
  ASSIGN_OR_RETURN(const std::vector<hf::WeightPart> weights, weights_of(files, base));
  ASSIGN_OR_RETURN(std::vector<std::string> targets, targets_of(base, files, config, weights));
  ASSIGN_OR_RETURN(train::TrainConfig with, config_of(base, files, config, std::move(targets)));
  models::ModelFunctions model = train::run_model(with, base.tokenizer->vocab_size(), use);
  if (const Status found = train::check_run_model(with, model); !found.ok())
    return found.error().with_context(files.path);
  return PeftModel{std::move(with), std::move(model), {}};
}

Result<PeftModel> peft_model(const hf::LoraFiles& files, const trained::LoadedModel& base,
                             const train::TrainConfig& config, train::ModelUse use) {
  const std::string& where = base.parameters.path;
  ASSIGN_OR_RETURN(PeftModel out, described_peft(files, base, config, use));
  ASSIGN_OR_RETURN(const std::vector<hf::WeightPart> weights, weights_of(files, base));
  const models::ModelFunctions& model = out.functions;
  std::vector<runtime::Buffer> values = held_values(base, model);
  if (const std::string hash = files.base_hash.empty() ? "" : hf::parameters_hash(model.paths, values);
      files.base_hash != hash) {
    ASSIGN_OR_RETURN(const bool is_same, is_base(files, base, out.config));
    if (!is_same)
      return invalid_argument(fmt::format(
          "{} is of a base whose parameters have the SHA-256 {}, but those of {} have {}: it is an adapter "
          "for another base",
          files.path, files.base_hash, where, hash));
  }
  RETURN_IF_ERROR(hf::take_lora(files, weights,
                                hf::lora_modules(weights, model.matrices, model.paths, model.shapes),
                                model.paths, values));
  out.values = std::move(values);
  return out;
}

}  // namespace ostro::convert
