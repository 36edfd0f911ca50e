#include "ostro/convert/export_files.h"

#include <fmt/core.h>

#include <utility>

#include "ostro/audit/record/fork.h"
#include "ostro/audit/record/maker.h"
#include "ostro/audit/record/witness.h"
#include "ostro/base/check.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/chain.h"
#include "ostro/chat/chat_template.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/convert/export_grok.h"
#include "ostro/convert/import/import_hf.h"
#include "ostro/hf/adapter.h"
#include "ostro/hf/export.h"
#include "ostro/hf/import.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::convert {
namespace {

constexpr int64_t kMaxImportFile = 1 << 16;

// The directory of an import in which a checkpoint lies.
std::string import_of(const trained::LoadedModel& model) {
  return io::parent_path(io::parent_path(io::clean_path(model.parameters.path)));
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

Status write_template(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model) {
  const auto chat = chat::ChatTemplate::load(fs, model.tokenizer_path, *model.tokenizer, std::nullopt);
  if (!chat.ok() && chat.error().code() != ErrorCode::kNotFound) return chat.error();
  return chat.ok() ? chat->save(fs, request.out) : Status();
}

std::string base_hash(const trained::LoadedModel& model) {
  return hf::parameters_hash(model.functions.paths, model.parameters.values);
}

Status write_adapter(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model,
                     const models::DecoderOptions& decoder) {
  const auto& lora = std::get<train::LoraOptions>(model.config.adapter);
  ASSIGN_OR_RETURN(const std::vector<hf::WeightPart> weights, hf::family_weights(decoder));
  RETURN_IF_ERROR(hf::export_lora(fs, request.out, {lora.rank, lora.alpha, lora.use_rslora}, weights,
                                  model.functions.matrices, model.functions.paths, model.parameters.values,
                                  request.base, base_hash(model)));
  // As PEFT's trainers do: who takes the adapter talks to it as it was trained.
  ASSIGN_OR_RETURN(const hf::HfFamily* family, hf::hf_family(decoder.family->name));
  RETURN_IF_ERROR(hf::export_tokenizer(fs, request.out, *family, *model.tokenizer, decoder.seq_len));
  return write_template(fs, request, model);
}

Status write_model(io::FileSystem& fs, const ExportRequest& request, const trained::LoadedModel& model,
                   const models::DecoderOptions& decoder, hf::WeightSource source) {
  ASSIGN_OR_RETURN(const auto weights, hf::streamed_weights(decoder, std::move(source), request.dtype));
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

provenance::Made made_by(const ExportRequest& request, const models::DecoderOptions& decoder) {
  using provenance::Made;
  if (request.to == "peft") return Made::kAdapter;
  if (request.merge_lora) return Made::kMerge;
  if (request.to == "hf") return Made::kExport;
  return request.dtype == "int8" && decoder.int8_row_groups == 0 ? Made::kQuantize : Made::kConvert;
}

// The published state with whose parameters a run began that lies in a bundle, so that no import names it.
Result<std::optional<provenance::Source>> base_of_maker(io::FileSystem& fs, const std::string& run) {
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, io::join_path(run, chain::kChainFile)));
  const auto& maker = chain.genesis().maker;
  if (!maker) return std::optional<provenance::Source>();
  RETURN_IF_ERROR(audit::check_claims(chain.genesis(), io::join_path(run, chain::kChainFile)));
  const std::string path = io::join_path(io::join_path(run, audit::kMakerFolder), chain::kChainFile);
  ASSIGN_OR_RETURN(const chain::Chain of_maker, chain::read_chain(fs, path));
  RETURN_IF_ERROR(audit::check_maker(*maker, of_maker, path));
  const int64_t step = chain::entry_step(of_maker.find_hash(maker->head)->entry);
  std::optional<std::string> origin;
  if (of_maker.genesis().origin) {
    ASSIGN_OR_RETURN(origin, chain::canonical_object(*of_maker.genesis().origin));
  }
  return std::optional(
      provenance::Source{"base", maker->state, step, maker->head, of_maker.links.front().hash, origin});
}

// The base of an adapter, as far as the record names it: an import of an adapter was made from its base, and
// a run with an adapter began with the base.
Result<std::optional<provenance::Source>> base_of(io::FileSystem& fs, const std::string& run,
                                                  const provenance::Source& source) {
  if (!source.origin && source.genesis) return base_of_maker(fs, run);
  if (!source.origin) return std::optional<provenance::Source>();
  ASSIGN_OR_RETURN(const nlohmann::json origin, io::parse_json(*source.origin, "origin"));
  std::optional<provenance::Source> base;
  if (origin.is_object() && origin.contains("format") && origin["format"] == "peft") {
    ASSIGN_OR_RETURN(base, provenance::made_from(*source.origin, "origin"));
  } else if (source.genesis) {
    ASSIGN_OR_RETURN(const std::string state, io::JsonFields(origin, "origin").string("state"));
    base = provenance::Source{"base", state, 0, {}, {}, source.origin};
  }
  if (base) base->role = "base";
  return base;
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

Result<ExportRequest> with_dtype(io::FileSystem& fs, ExportRequest request,
                                 const trained::LoadedModel& model) {
  if (!request.dtype.empty()) return request;
  if (request.to == "peft") {
    request.dtype = "F32";
  } else {
    ASSIGN_OR_RETURN(request.dtype, imported_dtype(fs, model));
  }
  return request;
}

Status export_files(const Context& context, const ExportRequest& request, const OpenedExport& opened) {
  ASSIGN_OR_RETURN(const models::DecoderOptions* decoder, decoder_of(opened.model));
  if (request.to == "peft") return write_adapter(context.fs, request, opened.model, *decoder);
  OSTRO_CHECK(opened.weights.has_value(), "{} was opened for its adapter", opened.model.parameters.path);
  if (request.to == "hf") return write_model(context.fs, request, opened.model, *decoder, *opened.weights);
  return export_grok(context.fs, request.out, opened.model, *decoder, *opened.weights, request.dtype,
                     context.progress);
}

Result<provenance::Provenance> provenance_of(io::FileSystem& fs, const ExportRequest& request,
                                             const OpenedExport& opened,
                                             std::map<std::string, provenance::FileDigest> files) {
  const trained::LoadedModel& model = opened.model;
  ASSIGN_OR_RETURN(const models::DecoderOptions* decoder, decoder_of(model));
  provenance::Provenance out;
  out.made = made_by(request, *decoder);
  out.files = std::move(files);
  out.weights.layout = request.to;
  out.weights.dtype = lower(request.dtype);
  if (request.to == "hf") out.weights.shard_bytes = request.shard_bytes;
  if (request.to == "peft") out.weights.base = request.base;
  const bool has_adapter = request.to == "peft" || request.merge_lora;
  if (has_adapter) out.weights.hash = base_hash(model);
  out.weights.tokenizer = model.tokenizer->hash();
  const std::string& path = model.parameters.path;
  ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, checkpoint::read_manifest(fs, path));
  out.numerics = manifest.info.numerics_version;
  // A run that lost its chain is read with --unchecked alone, and then there is none at hand.
  const auto run = audit::run_of_checkpoint(fs, path);
  const bool unchecked = request.trust == trained::Trust::kUnchecked;
  if (!run.ok() && !unchecked) return run.error();
  const char* role = has_adapter ? "adapter" : "model";
  auto source = provenance::source_of(fs, path, run.ok() ? run->value_or("") : "", role);
  if (!source.ok() && unchecked)
    source = provenance::Source{role, manifest.name, manifest.info.step, {}, {}, {}};
  if (!source.ok()) return source.error();
  out.sources.push_back(*source);
  if (!has_adapter) return out;
  ASSIGN_OR_RETURN(const auto base, base_of(fs, run.ok() ? run->value_or("") : "", *source));
  if (base) out.sources.push_back(*base);
  return out;
}

bool is_for_people(const std::string& name) {
  for (const char* begin : {"README", "LICENSE", "NOTICE", "USE_POLICY"})
    if (name.starts_with(begin)) return true;
  return false;
}

}  // namespace ostro::convert
