#include "ostro/convert/check_model.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "ostro/base/parallel.h"
#include "ostro/chain/canonical.h"
#include "ostro/convert/compare_export.h"
#include "ostro/convert/export_files.h"
#include "ostro/convert/export_grok.h"
#include "ostro/convert/model_record.h"
#include "ostro/convert/open_from_weights.h"
#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"
#include "ostro/trained/opened_model.h"

namespace ostro::convert {
namespace {

using audit::Finding, audit::Verdict;

constexpr int kThreads = 2;
constexpr int64_t kMaxConfig = 1 << 24;

// Whether programs that load a model read a file of this name, so that one more would make another model.
bool is_loaded(const std::string& name) {
  for (const char* end : {".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth",
                          ".gguf", ".h5", ".msgpack", ".py", ".jinja", ".model"})
    if (name.ends_with(end)) return true;
  for (const char* one :
       {"config.json", "generation_config.json", "adapter_config.json", "tokenizer.json",
        "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt",
        "merges.txt", "tekken.json", "chat_template.json", "processor_config.json",
        "preprocessor_config.json", "quantize_config.json", "quant_config.json"})
    if (name == one) return true;
  return false;
}

// Every file that provenance.json lists has its hash.
Status check_listed(const Context& context, ModelCheck& out) {
  io::FileSystem& fs = context.fs;
  std::vector<std::pair<std::string, provenance::FileDigest>> files(out.provenance->files.begin(),
                                                                    out.provenance->files.end());
  std::vector<std::optional<Finding>> found(files.size());
  RETURN_IF_ERROR(parallel_for(std::ssize(files), kThreads, [&](int64_t i) -> Status {
    const auto& [name, digest] = files[static_cast<size_t>(i)];
    std::optional<Finding>& finding = found[static_cast<size_t>(i)];
    const auto hash = io::file_sha256(fs, io::join_path(out.model, name));
    if (!hash.ok() && hash.error().code() == ErrorCode::kNotFound)
      finding = Finding{Verdict::kIncomplete, fmt::format("{} is missing: provenance.json lists it", name)};
    else if (!hash.ok())
      finding = Finding{Verdict::kCannotCheck, hash.error().message()};
    else if (*hash != digest.sha256)
      finding = Finding{Verdict::kDiffers,
                        fmt::format("{} has the SHA-256 {}, provenance.json lists {}: the file was changed "
                                    "after the export, or the provenance is of another one",
                                    name, *hash, digest.sha256)};
    return {};
  }));
  size_t wrong = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!found[i]) continue;
    if (is_for_people(files[i].first)) {
      out.open.push_back(fmt::format("{} was rewritten or removed since the export", files[i].first));
      continue;
    }
    ++wrong;
    out.findings.push_back(std::move(*found[i]));
  }
  if (wrong == 0)
    out.shown.push_back(
        fmt::format("{} files have the SHA-256 that provenance.json lists", out.provenance->files.size()));
  return {};
}

// No file that programs would load beside those of the export.
Status check_unlisted(const Context& context, const std::set<std::string>& files, ModelCheck& out) {
  std::set<std::string> folders = {"", "additional_chat_templates", "custom_generate"};
  for (const std::string& name : files)
    if (const size_t slash = name.find('/'); slash != std::string::npos)
      folders.insert(name.substr(0, slash));
  for (const std::string& folder : folders) {
    auto entries = context.fs.list(io::join_path(out.model, folder));
    if (!entries.ok() && entries.error().code() == ErrorCode::kNotFound) continue;  // its files are missing
    if (!entries.ok()) return entries.error();
    for (const io::DirEntry& entry : *entries) {
      const std::string name = io::join_path(folder, entry.name);
      const bool is_read = folder.empty() ? is_loaded(entry.name) : true;
      if (!entry.is_directory && is_read && !files.contains(name))
        out.findings.push_back(
            {Verdict::kDiffers, fmt::format("{} is not of the export: programs that load the "
                                            "model would read it, too",
                                            name)});
    }
  }
  return {};
}

// The export that the provenance says.
ExportRequest request_of(const provenance::Provenance& made) {
  ExportRequest out;
  out.to = made.weights.layout;
  if (out.to != "peft") out.dtype = made.weights.dtype;
  if (made.weights.shard_bytes) out.shard_bytes = *made.weights.shard_bytes;
  out.base = made.weights.base.value_or("");
  out.merge_lora = made.made == provenance::Made::kMerge;
  return out;
}

// Without a provenance: what the directory itself shows of its export.
Result<ExportRequest> guessed_request(const Context& context, const std::string& model,
                                      const std::string& checkpoint) {
  io::FileSystem& fs = context.fs;
  const auto has = [&](const char* name) { return fs.exists(io::join_path(model, name)); };
  ExportRequest out;
  ASSIGN_OR_RETURN(const bool is_grok, has(kGrokFolder));
  ASSIGN_OR_RETURN(const bool is_adapter, has("adapter_config.json"));
  out.to = is_grok ? "grok" : is_adapter ? "peft" : "hf";
  if (is_adapter) {
    const std::string path = io::join_path(model, "adapter_config.json");
    ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMaxConfig));
    ASSIGN_OR_RETURN(const nlohmann::json json, io::parse_json(text, path));
    const nlohmann::json base =
        json.is_object() ? json.value("base_model_name_or_path", nlohmann::json()) : json;
    if (base.is_string()) out.base = base.get<std::string>();
  }
  if (out.to != "hf") return out;
  ASSIGN_OR_RETURN(const bool in_shards, has("model.safetensors.index.json"));
  if (in_shards)
    return unsupported(
        fmt::format("{} has its weights in several files and no provenance.json, which would "
                    "say how large they are at most",
                    model));
  ASSIGN_OR_RETURN(const io::SafetensorsReader reader, io::SafetensorsReader::open_directory(fs, model));
  out.dtype = reader.tensors().empty() ? "F32" : reader.tensors().front().dtype;
  ASSIGN_OR_RETURN(const auto described,
                   trained::describe_model(fs, checkpoint, context.models, trained::Trust::kChain));
  out.merge_lora = train::lora_spec(described.model.config.adapter).has_value();
  return out;
}

// What an error of opening or computing the export says: what is not there is missing from the record.
Finding record_finding(const Error& error) {
  if (error.code() == ErrorCode::kNotFound) return {Verdict::kIncomplete, error.message()};
  return audit::finding_of(error);
}

// Whether the state is the first one of its run, which the genesis names.
bool begins_with(const ModelRecord& record) {
  const chain::GenesisEntry& genesis = record.chain->genesis();
  return genesis.initial && genesis.step() == record.step;
}

// The weights of which exports are the parameters themselves, so that they can stand for the checkpoint.
bool holds_parameters(const ExportRequest& request) {
  return request.to == "hf" && request.dtype == "F32" && !request.merge_lora;
}

// Computes the export again and compares it. Returns its files.
Result<std::set<std::string>> compare(const Context& context, const ModelRecord& record, ModelCheck& out) {
  const auto cannot = [&](Finding finding) {
    out.findings.push_back(std::move(finding));
    return std::set<std::string>();
  };
  auto request = out.provenance ? Result<ExportRequest>(request_of(*out.provenance))
                                : guessed_request(context, out.model, record.checkpoint);
  if (request.ok()) request = complete_request(std::move(*request));
  if (!request.ok()) return cannot(record_finding(request.error()));
  request->checkpoint = record.checkpoint;
  request->out = io::clean_path(out.model) + ".again";  // nothing is written there
  bool from_weights = false;
  auto opened = open_export(context, *request);
  if (!opened.ok() && opened.error().code() == ErrorCode::kNotFound && holds_parameters(*request)) {
    // The weights are compared with the manifest, which is believed only where the chain names its state.
    if (record.chain && record.chain->find_checkpoint(record.step) == nullptr && !begins_with(record))
      return cannot({Verdict::kIncomplete,
                     fmt::format("the parameters of step {} are needed: {}; the chain names no state after "
                                 "this step, so a manifest alone shows nothing",
                                 record.step, opened.error().message())});
    from_weights = true;
    opened = open_from_weights(context, *request, out.model);
  } else if (!opened.ok() && opened.error().code() == ErrorCode::kNotFound) {
    return cannot({Verdict::kIncomplete,
                   fmt::format("the parameters of step {} are needed: {}; without them only an export in f32 "
                               "can be checked, whose weights are the parameters",
                               record.step, opened.error().message())});
  }
  if (!opened.ok()) return cannot(record_finding(opened.error()));
  request = with_dtype(context.fs, std::move(*request), opened->model);
  if (!request.ok()) return cannot(record_finding(request.error()));
  auto compared = compare_export(context, *request, *opened, out.model, out.provenance.has_value());
  if (!compared.ok()) return cannot(record_finding(compared.error()));
  if (compared->findings.empty()) {
    out.shown.insert(out.shown.begin(),
                     fmt::format("every byte of {} files ({} bytes) of {} is what the state of step {} of {} "
                                 "gives (--to {}, {})",
                                 compared->files.size(), compared->bytes, out.model, record.step,
                                 record.where, request->to, request->dtype));
    if (from_weights)
      out.shown.push_back(
          fmt::format("the checkpoint's parameters are not there; those of the weights and the "
                      "hashes in its manifest give the state's name, {}",
                      opened->model.parameters.name));
  }
  out.findings.insert(out.findings.end(), compared->findings.begin(), compared->findings.end());
  out.open.insert(out.open.end(), compared->notes.begin(), compared->notes.end());
  return compared->files;
}

void say_chain(const ModelRecord& record, const std::string& run_hash, ModelCheck& out) {
  if (!record.chain) {
    out.open.push_back(fmt::format("no chain says that the state is of a run: {} has none", record.where));
    return;
  }
  out.head = record.chain->head();
  if (!run_hash.empty() && run_hash != out.head)
    out.findings.push_back(
        {Verdict::kDiffers, fmt::format("the run hash is {}, not {} as given", out.head, run_hash)});
  if (const std::string* name = record.chain->find_checkpoint(record.step))
    out.shown.push_back(fmt::format("the chain of {} names the state of step {}, {}; run hash {}{}",
                                    record.where, record.step, *name, out.head,
                                    run_hash == out.head ? ", as given" : ""));
  else
    out.open.push_back(
        fmt::format("the chain of {} has a fingerprint of the parameters of step {}, and no "
                    "name of its state",
                    record.where, record.step));
  if (run_hash.empty()) out.limits.push_back("that this is the chain that was published: --run_hash tells");
  out.limits.push_back(
      fmt::format("that a training gave this chain: `ostro verify {}` trains its steps again", record.run));
}

std::string about_source(const provenance::Provenance& made) {
  const provenance::Source& source = made.sources.front();
  return fmt::format("state {} of step {} of {}", source.state, source.step,
                     source.genesis ? fmt::format("the run that begins with {}", *source.genesis)
                                    : std::string("an import"));
}

// Without a record.
void say_what_is_needed(ModelCheck& out) {
  if (out.provenance)
    out.findings.push_back(
        {Verdict::kIncomplete,
         fmt::format(
             "the record is needed: provenance.json says that {} was made of {}; with the directory of "
             "that run: ostro verify RUN --model {}",
             out.model, about_source(*out.provenance), out.model)});
  else if (out.findings.empty())
    out.findings.push_back(
        {Verdict::kCannotCheck,
         fmt::format("{} has no {}, so nothing says of which run it is; with the directory of its run: ostro "
                     "verify RUN --model {}",
                     out.model, provenance::kProvenanceFile, out.model)});
}

Status check_with_record(const Context& context, const ModelCheckRequest& request, ModelCheck& out) {
  ASSIGN_OR_RETURN(const ModelRecord record,
                   open_record(context, request.record, out.provenance, out.findings));
  if (!record.is_of_model) return {};
  std::set<std::string> files;
  if (record.checkpoint.empty()) {
    out.findings.push_back(
        {Verdict::kIncomplete,
         out.provenance
             ? fmt::format(
                   "{} has no checkpoint of step {}, of which the model was made: it is needed; of an "
                   "export in f32 its manifest.json is enough",
                   request.record, out.provenance->sources.front().step)
             : fmt::format("{} has no checkpoint", request.record)});
  } else {
    ASSIGN_OR_RETURN(files, compare(context, record, out));
    if (files.empty()) return {};
  }
  if (files.empty() && out.provenance)
    for (const auto& [name, digest] : out.provenance->files) files.insert(name);
  if (!files.empty()) RETURN_IF_ERROR(check_unlisted(context, files, out));
  say_chain(record, request.run_hash, out);
  return {};
}

}  // namespace

Result<ModelCheck> check_model(const Context& context, const ModelCheckRequest& request) {
  RETURN_IF_ERROR(chain::check_run_hash(request.run_hash));
  ModelCheck out;
  out.model = request.model;
  out.record = request.record;
  ASSIGN_OR_RETURN(const auto entries, context.fs.list(request.model));
  if (entries.empty()) return not_found(fmt::format("{} is empty", request.model));
  auto made = provenance::read_provenance(context.fs, request.model);
  if (made.ok())
    out.provenance = std::move(*made);
  else
    out.findings.push_back(audit::finding_of(made.error()));
  if (out.provenance) RETURN_IF_ERROR(check_listed(context, out));
  if (!request.record.empty()) {
    // What the record shows says more of a file than that its hash is another one, so it comes first.
    const std::vector<Finding> listed = std::exchange(out.findings, {});
    RETURN_IF_ERROR(check_with_record(context, request, out));
    out.findings.insert(out.findings.end(), listed.begin(), listed.end());
  } else {
    if (out.provenance) {
      std::set<std::string> files;
      for (const auto& [name, digest] : out.provenance->files) files.insert(name);
      RETURN_IF_ERROR(check_unlisted(context, files, out));
    }
    say_what_is_needed(out);
  }
  context.progress.end();
  audit::sort_worst_first(out.findings);
  return out;
}

}  // namespace ostro::convert
