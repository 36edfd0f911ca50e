#include "ostro/convert/export_model.h"

#include <fmt/core.h>

#include "ostro/base/log.h"
#include "ostro/convert/export_files.h"
#include "ostro/hf/adapter.h"
#include "ostro/hf/elements.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/provenance/written_files.h"
#include "ostro/train/programs/run_model.h"

namespace ostro::convert {
namespace {

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

}  // namespace

Result<ExportRequest> complete_request(ExportRequest request) {
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

// An earlier provenance is removed first: it would be that of other files while these are replaced.
Result<Exported> export_model(const Context& context, const ExportRequest& request) {
  ASSIGN_OR_RETURN(ExportRequest complete, complete_request(request));
  if (complete.to != "grok") RETURN_IF_ERROR(refuse_among_others(context.fs, complete.out));
  ASSIGN_OR_RETURN(const OpenedExport opened, open_export(context, complete));
  ASSIGN_OR_RETURN(complete, with_dtype(context.fs, std::move(complete), opened.model));
  const std::string path = io::join_path(complete.out, provenance::kProvenanceFile);
  RETURN_IF_ERROR(context.fs.remove_all(path));
  provenance::WrittenFiles files(context.fs, complete.out);
  RETURN_IF_ERROR(export_files(context.in(files), complete, opened));
  ASSIGN_OR_RETURN(const provenance::Provenance made,
                   provenance_of(context.fs, complete, opened, files.files()));
  RETURN_IF_ERROR(io::write_file_atomically(context.fs, path, provenance::provenance_text(made)));
  return Exported{opened.model.parameters.path, opened.model.parameters.step};
}

}  // namespace ostro::convert
