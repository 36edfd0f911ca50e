#include "ostro/convert/export_model.h"

#include <fmt/core.h>

#include "ostro/base/log.h"
#include "ostro/chat/chat_template.h"
#include "ostro/checkpoint/boxes.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/convert/export_grok.h"
#include "ostro/convert/import_hf.h"
#include "ostro/hf/adapter.h"
#include "ostro/hf/elements.h"
#include "ostro/hf/export.h"
#include "ostro/hf/import.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/trained/merged.h"
#include "ostro/trained/opened_model.h"

namespace ostro::convert {
namespace {

constexpr int64_t kMaxImportFile = 1 << 16;

// The directory of an import in which a checkpoint lies.
std::string import_of(const trained::LoadedModel& model) {
  return io::parent_path(io::parent_path(io::clean_path(model.parameters.path)));
}

// An error when the directory holds `file`: programs would read it together with what is to be written.
Status refuse_beside(io::FileSystem& fs, const std::string& out, const char* file, const char* what) {
  ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(out, file)));
  if (!there) return {};
  return invalid_argument(fmt::format("--out {}: has {}; name another directory", out, what));
}

Status write_template(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model) {
  const auto chat = chat::ChatTemplate::load(fs, model.tokenizer_path, *model.tokenizer, std::nullopt);
  if (!chat.ok() && chat.error().code() != ErrorCode::kNotFound) return chat.error();
  return chat.ok() ? chat->save(fs, request.out) : Status();
}

// Whether a directory of a model may hold an entry of this name, so that an export may be renewed.
bool belongs_to_model(const std::string& name) {
  for (const char* end : {".json", ".safetensors", ".jinja", ".model", ".py"})
    if (name.ends_with(end)) return true;
  for (const char* begin : {"README", "LICENSE", "NOTICE", "USE_POLICY"})
    if (name.starts_with(begin)) return true;
  return name == "merges.txt" || name == "additional_chat_templates";
}

// An error when the directory holds something that is not of a model: a folder for something else.
Status refuse_among_others(io::FileSystem& fs, const std::string& out) {
  ASSIGN_OR_RETURN(const bool there, fs.exists(out));
  if (!there) return {};
  ASSIGN_OR_RETURN(const auto entries, fs.list(out));
  std::string others;
  int64_t count = 0;
  for (const io::DirEntry& entry : entries)
    if (!belongs_to_model(entry.name) && ++count <= 3) others += (others.empty() ? "" : ", ") + entry.name;
  if (count == 0) return {};
  return invalid_argument(
      fmt::format("--out {}: holds {}{}, which belong to no model; name another directory", out, others,
                  count > 3 ? fmt::format(" and {} more", count - 3) : ""));
}

Status write_adapter(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model,
                     const models::DecoderOptions& decoder) {
  const auto* lora = std::get_if<train::LoraOptions>(&model.config.adapter);
  if (lora == nullptr)
    return invalid_argument(fmt::format("--to peft: {} has no adapter; use --to hf", model.parameters.path));
  RETURN_IF_ERROR(refuse_beside(fs, request.out, "config.json",
                                "a model (config.json), to which programs would add the adapter"));
  ASSIGN_OR_RETURN(const std::vector<hf::WeightPart> weights, hf::family_weights(decoder));
  RETURN_IF_ERROR(hf::export_lora(fs, request.out, {lora->rank, lora->alpha, lora->use_rslora}, weights,
                                  model.functions.matrices, model.functions.paths, model.parameters.values,
                                  request.base,
                                  hf::parameters_hash(model.functions.paths, model.parameters.values)));
  // As PEFT's trainers do: who takes the adapter talks to it as it was trained.
  ASSIGN_OR_RETURN(const hf::HfFamily* family, hf::hf_family(decoder.family->name));
  RETURN_IF_ERROR(hf::export_tokenizer(fs, request.out, *family, *model.tokenizer, decoder.seq_len));
  return write_template(fs, request, model);
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

// The type of the weights of which an import was made, and which all its values are in; else f32.
Result<std::string> imported_dtype(io::FileSystem& fs, const trained::LoadedModel& model) {
  const std::string path = io::join_path(import_of(model), kImportFile);
  ASSIGN_OR_RETURN(const bool there, fs.exists(path));
  if (!there) return std::string("F32");
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMaxImportFile));
  ASSIGN_OR_RETURN(const nlohmann::json json, io::parse_json(text, path));
  return io::JsonFields(json, path).string("dtype");
}

Status write_model(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model,
                   const models::DecoderOptions& decoder, hf::WeightSource source) {
  std::string dtype = request.dtype;
  if (dtype.empty()) {
    ASSIGN_OR_RETURN(dtype, imported_dtype(fs, model));
  }
  ASSIGN_OR_RETURN(const auto weights, hf::streamed_weights(decoder, std::move(source), dtype));
  RETURN_IF_ERROR(hf::export_model(fs, request.out,
                                   {decoder, decoder.vocab_rows(model.tokenizer->vocab_size())},
                                   *model.tokenizer, weights, request.shard_bytes));
  const std::string beside = io::parent_path(model.tokenizer_path);
  ASSIGN_OR_RETURN(const bool imported, fs.exists(io::join_path(beside, checkpoint::kOriginFile)));
  // What it came with. The tokenizer.json of a .model is one that only Ostro reads, and would hide the
  // .model.
  const bool is_model = model.tokenizer->spec().kind == tokenizer::ModelKind::kSentencePiece;
  if (imported) return hf::copy_companions(fs, beside, request.out, is_model ? "tokenizer.json" : "");
  return write_template(fs, request, model);
}

Status write_export(const Context& context, const ExportRequest& request, const trained::LoadedModel& model,
                    hf::WeightSource source) {
  ASSIGN_OR_RETURN(const models::DecoderOptions* decoder, decoder_of(model));
  if (request.to != "grok") return write_model(context.fs, request, model, *decoder, std::move(source));
  return export_grok(context.fs, request.out, model, *decoder, source, request.dtype, context.progress);
}

// With all parameters in memory.
Result<trained::Parameters> export_from_memory(const Context& context, const ExportRequest& request) {
  io::FileSystem& fs = context.fs;
  ASSIGN_OR_RETURN(trained::LoadedModel model, trained::load_model(fs, request.checkpoint, request.tokenizer,
                                                                   context.models, request.trust));
  ASSIGN_OR_RETURN(const models::DecoderOptions* decoder, decoder_of(model));
  if (request.to == "peft") {
    RETURN_IF_ERROR(write_adapter(fs, request, model, *decoder));
    return std::move(model.parameters);
  }
  RETURN_IF_ERROR(refuse(fs, request, model));
  ASSIGN_OR_RETURN(std::vector<runtime::Buffer> values, trained::merged_parameters(model, context.engine));
  const models::ModelFunctions base = train::base_model(model.config, model.tokenizer->vocab_size());
  RETURN_IF_ERROR(write_export(context, request, model,
                               {base.paths, base.shapes, checkpoint::boxes_in_memory(std::move(values))}));
  return std::move(model.parameters);
}

Result<trained::Parameters> write_to(const Context& context, const ExportRequest& request) {
  io::FileSystem& fs = context.fs;
  if (request.to == "peft" || request.merge_lora) return export_from_memory(context, request);
  // The parameters stay in the checkpoint, and are hashed before anything is written.
  const auto check = [&](const trained::OpenedModel& opened) -> Status {
    RETURN_IF_ERROR(refuse(fs, request, opened.model));
    return trained::check_weights(opened.reader, context.progress);
  };
  auto opened =
      trained::open_model(fs, request.checkpoint, request.tokenizer, context.models, request.trust, check);
  // A checkpoint of which the chain has only a fingerprint can be compared with it in memory alone.
  if (!opened.ok() && opened.error().code() == ErrorCode::kUnsupported)
    return export_from_memory(context, request);
  if (!opened.ok()) return opened.error();
  const auto reader = std::make_shared<const checkpoint::PartReader>(std::move(opened->reader));
  const models::ModelFunctions& model = opened->model.functions;
  RETURN_IF_ERROR(write_export(context, request, opened->model,
                               {model.paths, model.shapes, checkpoint::boxes_of(reader)}));
  return std::move(opened->model.parameters);
}

// Checks that the options belong together, and puts the type of the weights where none is said.
Result<ExportRequest> checked(ExportRequest request) {
  if (request.to != "hf" && request.to != "peft" && request.to != "grok")
    return invalid_argument(fmt::format("--to {}: use hf, peft or grok", request.to));
  if (request.merge_lora && request.to != "hf") return invalid_argument("--merge_lora: only with --to hf");
  if (!request.base.empty() && request.to != "peft") return invalid_argument("--base: only with --to peft");
  if (request.to == "peft" && (!request.dtype.empty() || request.shard_bytes != ExportRequest().shard_bytes))
    return invalid_argument("--dtype, --shard_size: an adapter is one file in f32; leave them out");
  if (request.to == "grok" && request.shard_bytes != ExportRequest().shard_bytes)
    return invalid_argument("--shard_size: only with --to hf; the release has a file for each tensor");
  if (request.to == "grok" && request.dtype.empty()) request.dtype = "int8";
  if (request.to != "grok" && !request.dtype.empty()) {
    const std::string given = request.dtype;
    for (char& c : request.dtype)  // as safetensors call it
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!hf::is_weight_dtype(request.dtype))
      return invalid_argument(fmt::format("--dtype {}: use f32, bf16 or f16", given));
  }
  if (request.shard_bytes < 1)
    return invalid_argument(fmt::format("--shard_size {}: use 1 or more", request.shard_bytes));
  return request;
}

}  // namespace

// The names are those of the model's structure, which a vocabulary of any size shows.
void warn_of_adapters(const train::TrainConfig& config) {
  constexpr int64_t kAnyVocabulary = 512;
  if (!train::lora_spec(config.adapter)) return;
  const auto* decoder =
      models::model_options_as<models::DecoderOptions, models::Decoder>(config.model_options());
  if (decoder == nullptr) return;
  const auto weights = hf::family_weights(*decoder);
  Status named = weights.ok() ? Status() : Status(weights.error());
  if (weights.ok()) {
    const models::ModelFunctions model = train::run_model(config, decoder->vocab_rows(kAnyVocabulary));
    named = hf::check_lora_names(*weights, model.matrices,
                                 hf::lora_modules(*weights, model.matrices, model.paths, model.shapes));
  }
  if (!named.ok())
    log_warning(
        fmt::format("`ostro export --to peft` will not write these adapters: {}", named.error().message()));
}

Result<Exported> export_model(const Context& context, const ExportRequest& request) {
  ASSIGN_OR_RETURN(const ExportRequest complete, checked(request));
  if (complete.to != "grok") RETURN_IF_ERROR(refuse_among_others(context.fs, complete.out));
  ASSIGN_OR_RETURN(const trained::Parameters from, write_to(context, complete));
  return Exported{from.path, from.step};
}

}  // namespace ostro::convert
