#include "ostro/convert/import/import_upcycle.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "ostro/base/check.h"
#include "ostro/convert/import/made_model.h"
#include "ostro/convert/import/new_directory.h"
#include "ostro/io/files/path.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::convert {
namespace {

using models::DecoderOptions, models::LayerKind;
using DecoderModel = models::ModelOptionsOf<DecoderOptions, models::Decoder>;

// The family whose values are the dense model's: one that other programs know where there is one.
const char* family_of_mixture(const DecoderOptions& o) {
  const std::string type = o.type();
  const bool window_everywhere =
      !o.sliding_window || std::all_of(o.layer_pattern.begin(), o.layer_pattern.end(),
                                       [](LayerKind kind) { return kind == LayerKind::kSliding; });
  const bool biased = o.qkv_bias || o.out_bias;
  if ((type == "llama" || type == "mistral") && !biased) return "mixtral";
  if (type == "qwen3" && window_everywhere) return "qwen3_moe";
  return "decoder";
}

Result<DecoderOptions> mixture_of(const DecoderOptions& dense, const Upcycle& request) {
  if (dense.num_experts > 0)
    return invalid_argument(
        fmt::format("--checkpoint {}: has {} experts in each layer; only a dense model becomes a mixture",
                    request.checkpoint, dense.num_experts));
  DecoderOptions o = dense;
  o.family = &models::family_of(family_of_mixture(dense));
  if (o.type() != "decoder") o.layer_pattern = DecoderOptions(o.type()).layer_pattern;
  o.num_experts = request.experts;
  o.num_experts_per_tok = request.per_token;
  o.norm_topk_prob = true;  // so that equal experts together are one of them
  if (const Status resolved = o.resolve(); !resolved.ok())
    return resolved.error().with_context(
        fmt::format("--upcycle {} of {}", request.experts, request.checkpoint));
  return o;
}

// Puts `from` into `to`, each layer `copies` times.
void put_copies(const runtime::Buffer& from, int64_t copies, runtime::Buffer& to) {
  const int64_t layers = copies == 1 ? 1 : from.shape().size_of("layers");
  const size_t bytes = from.bytes().size() / static_cast<size_t>(layers);
  OSTRO_CHECK(to.bytes().size() == from.bytes().size() * static_cast<size_t>(copies), "{} of {} make {}",
              copies, from.shape().str(), to.shape().str());
  std::byte* at = to.mutable_bytes().data();
  for (int64_t i = 0; i < layers; ++i)
    for (int64_t c = 0; c < copies; ++c, at += bytes)
      std::memcpy(at, from.bytes().data() + static_cast<size_t>(i) * bytes, bytes);
}

// Which parameter of the dense model a mixture's is, and whether it is its experts' copies. No name: it has
// no part in the dense model.
std::pair<std::string, bool> dense_path(const std::string& path) {
  for (const char* name : {"gate_up", "down"}) {
    const std::string end = fmt::format("/moe/{}", name);
    if (path.ends_with(end))
      return {fmt::format("{}/mlp/{}/weight", path.substr(0, path.size() - end.size()), name), true};
  }
  return {path.find("/moe/") == std::string::npos ? path : std::string(), false};
}

// Overwrites initial parameters of the mixture with those of the dense model.
Status take_dense(const trained::LoadedModel& dense, const models::ModelFunctions& mixture, int64_t experts,
                  std::vector<runtime::Buffer>& values) {
  size_t taken = 0;
  for (size_t k = 0; k < mixture.paths.size(); ++k) {
    const auto [path, copies] = dense_path(mixture.paths[k]);
    if (path.empty()) continue;
    const auto& paths = dense.functions.paths;
    const auto at = std::find(paths.begin(), paths.end(), path);
    if (at == paths.end())
      return unsupported(fmt::format("{} has no {}, of which {} would be made", dense.parameters.path, path,
                                     mixture.paths[k]));
    const runtime::Buffer& value = dense.parameters.values[static_cast<size_t>(at - paths.begin())];
    runtime::Buffer made = runtime::Buffer::empty(mixture.shapes[k]);
    put_copies(value, copies ? experts : 1, made);
    values[k] = std::move(made);
    ++taken;
  }
  OSTRO_CHECK(taken == dense.functions.paths.size(), "{} of {} parameters of {} are in the mixture", taken,
              dense.functions.paths.size(), dense.parameters.path);
  return {};
}

// The mixture's configuration: the model, and nothing of a run.
Result<train::TrainConfig> mixture_config(const trained::LoadedModel& dense, const DecoderOptions& options,
                                          const Upcycle& request) {
  train::TrainConfig config = made_config(dense, request.out);
  config.model.choose(options.type());
  auto* model = dynamic_cast<DecoderModel*>(&config.model.value());
  OSTRO_CHECK(model != nullptr, "{} is another model", options.type());
  model->options = options;
  config.trainer.seed = request.seed;
  RETURN_IF_ERROR(config.resolve());
  return config;
}

// Initial parameters of the mixture, with those of the dense model in their places.
Result<std::vector<runtime::Buffer>> mixture_values(const Context& context, const Upcycle& request,
                                                    const trained::LoadedModel& dense,
                                                    const train::TrainConfig& config,
                                                    const models::ModelFunctions& functions) {
  ASSIGN_OR_RETURN(const auto engine, context.engine_for_a_moment());
  ASSIGN_OR_RETURN(trained::Parameters initial, trained::load_or_init(context.fs, "init", config, functions,
                                                                      *engine, trained::Trust::kUnchecked));
  RETURN_IF_ERROR(take_dense(dense, functions, request.experts, initial.values));
  return std::move(initial.values);
}

}  // namespace

Result<std::string> upcycle(const Context& context, const Upcycle& request) {
  io::FileSystem& fs = context.fs;
  if (request.experts < 2)
    return invalid_argument(fmt::format("--upcycle {}: use 2 or more experts", request.experts));
  RETURN_IF_ERROR(check_is_new(fs, request.out));
  ASSIGN_OR_RETURN(
      const trained::LoadedModel dense,
      trained::load_model(fs, request.checkpoint, request.tokenizer, context.models, trained::Trust::kChain));
  if (train::lora_spec(dense.config.adapter))
    return invalid_argument(
        fmt::format("--checkpoint {}: has an adapter; ostro export --merge_lora adds it to "
                    "the weights, import what that writes",
                    request.checkpoint));
  const auto* decoder =
      models::model_options_as<DecoderOptions, models::Decoder>(dense.config.model_options());
  if (decoder == nullptr)
    return unsupported(fmt::format("--checkpoint {}: model.type {} is no decoder", request.checkpoint,
                                   dense.config.model_options().type()));
  ASSIGN_OR_RETURN(const DecoderOptions options, mixture_of(*decoder, request));
  ASSIGN_OR_RETURN(const train::TrainConfig config, mixture_config(dense, options, request));
  const models::ModelFunctions functions = train::base_model(config, dense.tokenizer->vocab_size());
  ASSIGN_OR_RETURN(const auto values, mixture_values(context, request, dense, config, functions));
  ASSIGN_OR_RETURN(
      const checkpoint::Saved saved,
      write_made_model(fs, dense,
                       {"upcycle", {}, request.checkpoint, request.out, config, functions.paths, values}));
  return fmt::format("{}: {}, {} experts in each layer, {} for a token, of {}, state {}\n",
                     io::clean_path(request.out), options.type(), request.experts, request.per_token,
                     dense.parameters.path, saved.name);
}

}  // namespace ostro::convert
