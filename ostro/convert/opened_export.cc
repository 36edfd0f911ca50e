#include "ostro/convert/opened_export.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/base/check.h"
#include "ostro/checkpoint/boxes.h"
#include "ostro/convert/export_grok.h"
#include "ostro/io/files/path.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/trained/merged.h"
#include "ostro/trained/opened_model.h"

namespace ostro::convert {
namespace {

// An error when the directory holds `file`: programs would read it together with what is to be written.
Status refuse_beside(io::FileSystem& fs, const std::string& out, const char* file, const char* what) {
  ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(out, file)));
  if (!there) return {};
  return invalid_argument(fmt::format("--out {}: has {}; name another directory", out, what));
}

Status refuse_adapter(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model) {
  if (!std::holds_alternative<train::LoraOptions>(model.config.adapter))
    return invalid_argument(fmt::format("--to peft: {} has no adapter; use --to hf", model.parameters.path));
  return refuse_beside(fs, request.out, "config.json",
                       "a model (config.json), to which programs would add the adapter");
}

// What is wrong with the request, before anything is read for it.
Status refuse(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model) {
  if (request.to == "peft") return refuse_adapter(fs, request, model);
  RETURN_IF_ERROR(refuse_beside(fs, request.out, "adapter_config.json",
                                "an adapter (adapter_config.json), which programs would add to this model"));
  ASSIGN_OR_RETURN(const models::DecoderOptions* decoder, decoder_of(model));
  if (request.to == "grok") return check_grok_export(fs, request.out, model, *decoder, request.dtype);
  if (decoder->int8_row_groups > 0)
    return unsupported(fmt::format(
        "{}: its matrices are int8, which --to {} does not write; import the model with --dtype bf16",
        model.parameters.path, request.to));
  const bool adapted = train::lora_spec(model.config.adapter).has_value();
  if (request.merge_lora && !adapted)
    return invalid_argument(
        fmt::format("--merge_lora: {} has no adapter; leave it out", model.parameters.path));
  if (!adapted || request.merge_lora) return {};
  return invalid_argument(
      fmt::format("{} has an adapter; add --merge_lora to add it to the weights, or write it alone with --to "
                  "peft",
                  model.parameters.path));
}

// The values of the parameters that the model had before it got adapters.
hf::WeightSource without_adapters(const trained::LoadedModel& model, const models::ModelFunctions& base) {
  hf::WeightSource out{base.paths, base.shapes, {}};
  std::vector<runtime::Buffer> values;
  const auto& paths = model.functions.paths;
  for (const std::string& path : base.paths) {
    const auto at = std::find(paths.begin(), paths.end(), path);
    OSTRO_CHECK(at != paths.end(), "the model has no {}", path);
    values.push_back(model.parameters.values[static_cast<size_t>(at - paths.begin())]);
  }
  out.read = checkpoint::boxes_in_memory(std::move(values));
  return out;
}

// With all parameters in memory.
Result<OpenedExport> open_in_memory(const Context& context, const ExportRequest& request) {
  ASSIGN_OR_RETURN(
      trained::LoadedModel model,
      trained::load_model(context.fs, request.checkpoint, request.tokenizer, context.models, request.trust));
  ASSIGN_OR_RETURN(const models::DecoderOptions* decoder, decoder_of(model));
  (void)decoder;
  RETURN_IF_ERROR(refuse(context.fs, request, model));
  OpenedExport out{std::move(model), {}, {}};
  if (request.to == "peft") return out;
  ASSIGN_OR_RETURN(std::vector<runtime::Buffer> values,
                   trained::merged_parameters(out.model, context.engine));
  const models::ModelFunctions base = train::base_model(out.model.config, out.model.tokenizer->vocab_size());
  out.weights = hf::WeightSource{base.paths, base.shapes, checkpoint::boxes_in_memory(std::move(values))};
  if (request.merge_lora) out.base = without_adapters(out.model, base);
  return out;
}

}  // namespace

Result<const models::DecoderOptions*> decoder_of(const trained::LoadedModel& model) {
  const auto* decoder =
      models::model_options_as<models::DecoderOptions, models::Decoder>(model.config.model_options());
  if (decoder != nullptr) return decoder;
  return unsupported(
      fmt::format("{}: model.type {} cannot be exported; only families of decoders can "
                  "(docs/reference/models.md)",
                  model.parameters.path, model.config.model_options().type()));
}

Result<OpenedExport> open_export(const Context& context, const ExportRequest& request) {
  io::FileSystem& fs = context.fs;
  if (request.to == "peft" || request.merge_lora) return open_in_memory(context, request);
  // The parameters stay in the checkpoint, and are hashed before anything is written.
  const auto check = [&](const trained::OpenedModel& opened) -> Status {
    RETURN_IF_ERROR(refuse(fs, request, opened.model));
    return trained::check_weights(opened.reader, context.progress);
  };
  auto opened =
      trained::open_model(fs, request.checkpoint, request.tokenizer, context.models, request.trust, check);
  // A checkpoint of which the chain has only a fingerprint can be compared with it in memory alone.
  if (!opened.ok() && opened.error().code() == ErrorCode::kUnsupported)
    return open_in_memory(context, request);
  if (!opened.ok()) return opened.error();
  const auto reader = std::make_shared<const checkpoint::PartReader>(std::move(opened->reader));
  OpenedExport out{std::move(opened->model), {}, {}};
  out.weights =
      hf::WeightSource{out.model.functions.paths, out.model.functions.shapes, checkpoint::boxes_of(reader)};
  return out;
}

}  // namespace ostro::convert
