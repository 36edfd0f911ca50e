// ostro export
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "ostro/chat/chat_template.h"
#include "ostro/checkpoint/boxes.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/model/check_weights.h"
#include "ostro/cli/shared/engine_choice.h"
#include "ostro/convert/export_grok.h"
#include "ostro/hf/adapter.h"
#include "ostro/hf/elements.h"
#include "ostro/hf/export.h"
#include "ostro/hf/import.h"
#include "ostro/io/files/path.h"
#include "ostro/io/s3/routing_file_system.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/trained/loaded_model.h"
#include "ostro/trained/merged.h"
#include "ostro/trained/opened_model.h"

namespace ostro::cli {
namespace {

struct ExportRequest {
  std::string checkpoint, to, out, tokenizer, base;
  std::string dtype;  // as safetensors call it
  int64_t shard_bytes = hf::kMaxFileBytes;
  bool merge_lora = false;
  trained::Trust trust = trained::Trust::kChain;
};

// An error when the directory holds `file`: programs would read it together with what is to be written.
Status refuse_beside(io::FileSystem& fs, const std::string& out, const char* file, const char* what) {
  ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(out, file)));
  if (!there) return {};
  return invalid_argument(fmt::format("--out {}: has {}; name another directory", out, what));
}

Status write_adapter(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model,
                     const models::DecoderOptions& decoder) {
  const auto* lora = std::get_if<train::LoraOptions>(&model.config.adapter);
  if (lora == nullptr)
    return invalid_argument(fmt::format("--to peft: {} has no adapter; use --to hf", model.parameters.path));
  RETURN_IF_ERROR(refuse_beside(fs, request.out, "config.json",
                                "a model (config.json), to which programs would add the adapter"));
  ASSIGN_OR_RETURN(const std::vector<hf::WeightPart> weights, hf::family_weights(decoder));
  return hf::export_lora(fs, request.out, {lora->rank, lora->alpha, lora->use_rslora}, weights,
                         model.functions.matrices, model.functions.paths, model.parameters.values,
                         request.base, hf::parameters_hash(model.functions.paths, model.parameters.values));
}

Result<const models::DecoderOptions*> decoder_of(const trained::LoadedModel& model) {
  const auto* decoder =
      models::model_options_as<models::DecoderOptions, models::Decoder>(model.config.model_options());
  if (decoder != nullptr) return decoder;
  return unsupported(
      fmt::format("{}: model.type {} cannot be exported; only families of decoders can "
                  "(docs/reference/models.md)",
                  model.parameters.path, model.config.model_options().type()));
}

// What is wrong with the request, before anything is read for it.
Status refuse(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model) {
  RETURN_IF_ERROR(refuse_beside(fs, request.out, "adapter_config.json",
                                "an adapter (adapter_config.json), which programs would add to this model"));
  ASSIGN_OR_RETURN(const models::DecoderOptions* decoder, decoder_of(model));
  if (request.to == "grok")
    return convert::check_grok_export(fs, request.out, model, *decoder, request.dtype);
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

Status write_model(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model,
                   const models::DecoderOptions& decoder, hf::WeightSource source) {
  ASSIGN_OR_RETURN(const auto weights, hf::streamed_weights(decoder, std::move(source), request.dtype));
  RETURN_IF_ERROR(hf::export_model(fs, request.out,
                                   {decoder, decoder.vocab_rows(model.tokenizer->vocab_size())},
                                   *model.tokenizer, weights, request.shard_bytes));
  const std::string beside = io::parent_path(model.tokenizer_path);
  ASSIGN_OR_RETURN(const bool imported, fs.exists(io::join_path(beside, checkpoint::kOriginFile)));
  if (imported) return hf::copy_companions(fs, beside, request.out);  // what it came with
  const auto chat = chat::ChatTemplate::load(fs, model.tokenizer_path, *model.tokenizer, std::nullopt);
  if (!chat.ok() && chat.error().code() != ErrorCode::kNotFound) return chat.error();
  return chat.ok() ? chat->save(fs, request.out) : Status();
}

Status write(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model,
             hf::WeightSource source) {
  ASSIGN_OR_RETURN(const models::DecoderOptions* decoder, decoder_of(model));
  if (request.to != "grok") return write_model(fs, request, model, *decoder, std::move(source));
  PercentProgressLine line;
  return convert::export_grok(fs, request.out, model, *decoder, source, request.dtype, line);
}

// With all parameters in memory.
Result<trained::Parameters> export_from_memory(io::FileSystem& fs, const ExportRequest& request,
                                               const models::ModelChoices& models) {
  ASSIGN_OR_RETURN(trained::LoadedModel model,
                   trained::load_model(fs, request.checkpoint, request.tokenizer, models, request.trust));
  ASSIGN_OR_RETURN(const models::DecoderOptions* decoder, decoder_of(model));
  if (request.to == "peft") {
    RETURN_IF_ERROR(write_adapter(fs, request, model, *decoder));
    return std::move(model.parameters);
  }
  RETURN_IF_ERROR(refuse(fs, request, model));
  ASSIGN_OR_RETURN(std::vector<runtime::Buffer> values,
                   trained::merged_parameters(model, [] { return make_engine(); }));
  const models::ModelFunctions base = train::base_model(model.config, model.tokenizer->vocab_size());
  RETURN_IF_ERROR(
      write(fs, request, model, {base.paths, base.shapes, checkpoint::boxes_in_memory(std::move(values))}));
  return std::move(model.parameters);
}

Result<trained::Parameters> export_model(const ExportRequest& request, const models::ModelChoices& models) {
  io::FileSystem& fs = io::default_file_system();
  if (request.to == "peft" || request.merge_lora) return export_from_memory(fs, request, models);
  // The parameters stay in the checkpoint, and are hashed before anything is written.
  const auto check = [&](const trained::OpenedModel& opened) -> Status {
    RETURN_IF_ERROR(refuse(fs, request, opened.model));
    return check_weights(opened.reader);
  };
  auto opened = trained::open_model(fs, request.checkpoint, request.tokenizer, models, request.trust, check);
  // A checkpoint of which the chain has only a fingerprint can be compared with it in memory alone.
  if (!opened.ok() && opened.error().code() == ErrorCode::kUnsupported)
    return export_from_memory(fs, request, models);
  if (!opened.ok()) return opened.error();
  const auto reader = std::make_shared<const checkpoint::PartReader>(std::move(opened->reader));
  const models::ModelFunctions& model = opened->model.functions;
  RETURN_IF_ERROR(
      write(fs, request, opened->model, {model.paths, model.shapes, checkpoint::boxes_of(reader)}));
  return std::move(opened->model.parameters);
}

}  // namespace

int export_command(Args args) {
  ExportRequest request;
  std::string dtype;
  bool unchecked = false;
  args.summary(
      "Writes a model, its tokenizer and its chat template as a directory that other programs load.");
  args.option("--checkpoint", &request.checkpoint, "K", trained::kWhereHelp, Args::kRequired);
  args.option("--to", &request.to, "FORMAT",
              "hf: Hugging Face transformers; peft: the adapter alone; grok: the layout of Grok-1's release",
              Args::kRequired);
  args.option("--out", &request.out, "DIR", "the directory to write", Args::kRequired);
  args.option("--tokenizer", &request.tokenizer, "T",
              "tokenizer.json, when the checkpoint is not in its run");
  args.option(
      "--dtype", &dtype, "T",
      "type of the weights. --to hf: f32 (default), bf16 or f16; --to grok: of matrices, int8 (default), "
      "bf16 or f32");
  args.option("--shard_size", &request.shard_bytes, "BYTES", "--to hf: of a file of weights at most");
  args.flag("--merge_lora", &request.merge_lora, "--to hf: add the adapter to the weights");
  args.option("--base", &request.base, "B", "--to peft: name or directory of the model without the adapter");
  args.flag("--unchecked", &unchecked, trained::kUncheckedHelp);
  if (const auto code = args.parse()) return *code;
  request.trust = trained::trust(unchecked);
  if (request.to != "hf" && request.to != "peft" && request.to != "grok")
    return report_error(invalid_argument(fmt::format("--to {}: use hf, peft or grok", request.to)));
  if (request.merge_lora && request.to != "hf")
    return report_error(invalid_argument("--merge_lora: only with --to hf"));
  if (!request.base.empty() && request.to != "peft")
    return report_error(invalid_argument("--base: only with --to peft"));
  if (request.to == "peft" && (!dtype.empty() || request.shard_bytes != ExportRequest().shard_bytes))
    return report_error(
        invalid_argument("--dtype, --shard_size: an adapter is one file in f32; leave them out"));
  if (request.to == "grok" && request.shard_bytes != ExportRequest().shard_bytes)
    return report_error(
        invalid_argument("--shard_size: only with --to hf; the release has a file for each tensor"));
  if (dtype.empty()) dtype = request.to == "grok" ? "int8" : "f32";
  std::transform(dtype.begin(), dtype.end(), std::back_inserter(request.dtype),
                 [](char c) { return static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c); });
  if (request.to == "grok")
    request.dtype = dtype;
  else if (!hf::is_weight_dtype(request.dtype))
    return report_error(invalid_argument(fmt::format("--dtype {}: use f32, bf16 or f16", dtype)));
  if (request.shard_bytes < 1)
    return report_error(invalid_argument(fmt::format("--shard_size {}: use 1 or more", request.shard_bytes)));
  const auto exported = export_model(request, args.models());
  if (!exported.ok()) return report_error(exported.error());
  fmt::print("{}: {} (step {})\n", request.out, exported->path, exported->step);
  return kExitOk;
}

}  // namespace ostro::cli
