#include "ostro/convert/import/import_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/convert/import/import_hf.h"
#include "ostro/convert/import/made_model.h"
#include "ostro/convert/import/new_directory.h"
#include "ostro/hf/adapter.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/nn/adapters.h"
#include "ostro/numerics/arrays.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::convert {
namespace {

using models::DecoderOptions;

struct PeftImport {
  std::string directory, checkpoint, out, tokenizer;  // tokenizer "": that of the checkpoint
};

// The base's model with adapters on these matrices, and nothing of a run.
Result<train::TrainConfig> config_of(const trained::LoadedModel& base, const hf::LoraFiles& files,
                                     const PeftImport& request, std::vector<std::string> targets) {
  train::TrainConfig config = made_config(base, request.out);
  config.model = base.config.model;
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
                                            const PeftImport& request,
                                            const std::vector<hf::WeightPart>& weights) {
  ASSIGN_OR_RETURN(const train::TrainConfig all, config_of(base, files, request, {"*"}));
  const models::ModelFunctions model = train::run_model(all, base.tokenizer->vocab_size());
  return hf::lora_targets(files, hf::lora_modules(weights, model.matrices, model.paths, model.shapes));
}

// "q_proj, v_proj" of names of modules.
std::string last_words(const std::vector<std::string>& modules) {
  std::set<std::string> words;
  for (const std::string& module : modules) words.insert(module.substr(module.rfind('.') + 1));
  return fmt::format("{}", fmt::join(words, ", "));
}

// The parameters, those of the base as a run with an adapter holds them, those of the adapter zero.
Result<std::vector<runtime::Buffer>> held_values(const trained::LoadedModel& base,
                                                 const models::ModelFunctions& model) {
  std::vector<runtime::Buffer> out;
  for (size_t k = 0; k < model.paths.size(); ++k) {
    if (nn::is_adapter(model.paths[k])) {
      out.push_back(runtime::Buffer::zeros(model.shapes[k]));
      continue;
    }
    const auto& paths = base.functions.paths;
    const auto at =
        static_cast<size_t>(std::find(paths.begin(), paths.end(), model.paths[k]) - paths.begin());
    OSTRO_CHECK(at < paths.size(), "the base has no {}", model.paths[k]);
    const runtime::Buffer& value = base.parameters.values[at];
    if (value.shape() == model.shapes[k]) {
      out.push_back(value);
      continue;
    }
    runtime::Buffer frozen = runtime::Buffer::empty(model.shapes[k]);  // in bf16
    numerics::narrow(value.as<float>(), frozen.mutable_bytes());
    out.push_back(std::move(frozen));
  }
  return out;
}

// Makes the directory `out`: the model of the checkpoint with the adapter in `directory`, and a configuration
// to go on training it. Errors: those of open_lora and take_lora; the checkpoint is no decoder, has an
// adapter already, or holds other parameters than the base that the adapter names by its hash.
Result<std::string> import_peft(const Context& context, const PeftImport& request) {
  io::FileSystem& fs = context.fs;
  RETURN_IF_ERROR(check_is_new(fs, request.out));
  ASSIGN_OR_RETURN(const hf::LoraFiles files, hf::open_lora(fs, request.directory));
  ASSIGN_OR_RETURN(
      const trained::LoadedModel base,
      trained::load_model(fs, request.checkpoint, request.tokenizer, context.models, trained::Trust::kChain));
  if (train::lora_spec(base.config.adapter))
    return invalid_argument(fmt::format("--checkpoint {}: has an adapter; name the base of {}",
                                        request.checkpoint, request.directory));
  const auto* decoder =
      models::model_options_as<DecoderOptions, models::Decoder>(base.config.model_options());
  if (decoder == nullptr)
    return unsupported(fmt::format("--checkpoint {}: model.type {} is no decoder", request.checkpoint,
                                   base.config.model_options().type()));
  ASSIGN_OR_RETURN(const std::vector<hf::WeightPart> weights, hf::family_weights(*decoder));
  ASSIGN_OR_RETURN(std::vector<std::string> targets, targets_of(base, files, request, weights));
  ASSIGN_OR_RETURN(const train::TrainConfig config, config_of(base, files, request, std::move(targets)));
  const models::ModelFunctions model = train::run_model(config, base.tokenizer->vocab_size());
  if (const Status found = train::check_run_model(config, model); !found.ok())
    return found.error().with_context(files.path);
  ASSIGN_OR_RETURN(std::vector<runtime::Buffer> values, held_values(base, model));
  if (const std::string hash = files.base_hash.empty() ? "" : hf::parameters_hash(model.paths, values);
      files.base_hash != hash)
    return invalid_argument(fmt::format(
        "{} is of a base whose parameters have the SHA-256 {}, but those of {} have {}: it is an adapter for "
        "another base",
        files.path, files.base_hash, base.parameters.path, hash));
  RETURN_IF_ERROR(hf::take_lora(files, weights,
                                hf::lora_modules(weights, model.matrices, model.paths, model.shapes),
                                model.paths, values));
  std::map<std::string, std::string> hashes;
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) {
    ASSIGN_OR_RETURN(hashes[name], io::file_sha256(fs, io::join_path(request.directory, name)));
  }
  ASSIGN_OR_RETURN(
      const checkpoint::Saved saved,
      write_made_model(fs, base,
                       {"peft", hashes, request.checkpoint, request.out, config, model.paths, values}));
  return fmt::format("{}: {} with the adapter {} (rank {}, alpha {}, {}), state {}{}\n",
                     io::clean_path(request.out), base.parameters.path, request.directory, files.rank(),
                     files.alpha(), last_words(files.modules), saved.name,
                     files.base_hash.empty() ? "; it does not say of which base it is" : "");
}

// Whether an option is given that only --from grok has.
bool has_grok_options(const GrokImport& request) {
  const GrokImport usual;
  return !request.config.empty() || !request.layers.empty() || request.dtype != usual.dtype ||
         request.rounding != usual.rounding;
}

Result<std::string> import_upcycled(const Context& context, const ImportRequest& request) {
  const GrokImport& other = request.grok;
  if (!request.from.empty() || !other.directory.empty() || has_grok_options(other))
    return invalid_argument(
        "--upcycle makes a mixture of --checkpoint; leave out DIR, --from, --config, --layers, --dtype and "
        "--rounding");
  Upcycle upcycled = request.upcycle;
  if (upcycled.checkpoint.empty())
    return invalid_argument("--upcycle: say of which dense model with --checkpoint K");
  upcycled.experts = *request.experts;
  upcycled.out = other.out;
  upcycled.tokenizer = other.tokenizer;
  return upcycle(context, upcycled);
}

}  // namespace

Result<std::string> import_model(const Context& context, const ImportRequest& request) {
  if (request.experts) return import_upcycled(context, request);
  const auto& [from, grok, experts, upcycled] = request;
  if (from != "peft" && !upcycled.checkpoint.empty())
    return invalid_argument("--checkpoint is for --upcycle N and --from peft; leave it out");
  if (upcycled.per_token != Upcycle().per_token || upcycled.seed != Upcycle().seed)
    return invalid_argument("--num_experts_per_tok and --seed are for --upcycle N; leave them out");
  if (from.empty())
    return invalid_argument("--from: say hf, peft or grok; or make a mixture with --upcycle N");
  if (grok.directory.empty()) return invalid_argument("DIR: say which directory to read");
  if (from == "grok") return import_grok(context, grok);
  if (from != "hf" && from != "peft")
    return invalid_argument(fmt::format("--from {}: use hf, peft or grok", from));
  if (has_grok_options(grok))
    return invalid_argument(
        "--config, --layers, --dtype and --rounding are for --from grok only; leave them out");
  if (from == "hf") return import_hf(context, {grok.directory, grok.out, grok.tokenizer});
  if (upcycled.checkpoint.empty())
    return invalid_argument("--from peft: say of which base the adapter is, with --checkpoint K");
  return import_peft(context, {grok.directory, upcycled.checkpoint, grok.out, grok.tokenizer});
}

}  // namespace ostro::convert
