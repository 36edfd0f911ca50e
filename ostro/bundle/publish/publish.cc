#include "ostro/bundle/publish/publish.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "ostro/base/machine.h"
#include "ostro/bundle/check/check_bundle.h"
#include "ostro/bundle/parts/file_sums.h"
#include "ostro/bundle/parts/ledger_files.h"
#include "ostro/bundle/parts/write_manifest.h"
#include "ostro/bundle/publish/copy_record.h"
#include "ostro/bundle/publish/model_card.h"
#include "ostro/bundle/publish/replay_cost.h"
#include "ostro/chain/genesis_json.h"
#include "ostro/chain/record.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/convert/export_model.h"
#include "ostro/convert/import/new_directory.h"
#include "ostro/io/files/path.h"
#include "ostro/ir/text/text.h"
#include "ostro/page/facts/run_view.h"
#include "ostro/train/step/evaluate.h"
#include "ostro/train/step/run_data.h"

namespace ostro::bundle {
namespace {

constexpr size_t kBins = 1024;

// What is written as it is into YAML, JSON and Markdown.
bool is_plain(const std::string& text, const char* also) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(also).find(c) != std::string_view::npos;
  });
}

// What a publication is made of, opened before anything is written.
struct Material {
  int threads = 1;
  page::RunView view;  // with the chain
  std::optional<SigningKey> key;
  std::shared_ptr<const batches::DataSet> stores;  // null: published without a ledger
  std::vector<int64_t> steps;                      // of checkpoints
};

// They lie beside each other in the bundle, by their last names.
Status check_licenses(io::FileSystem& fs, const std::vector<std::string>& files) {
  std::map<std::string, std::string> by_name;
  for (const std::string& file : files) {
    const std::string name = io::base_name(file);
    if (!is_plain(name, "-._+"))
      return invalid_argument(
          fmt::format("--license_file {}: name the file with letters, digits, -, ., _ and +", file));
    ASSIGN_OR_RETURN(const io::FileInfo info, fs.stat(file));
    if (info.is_directory)
      return invalid_argument(fmt::format("--license_file {}: is a directory; name the files in it", file));
    const auto [other, is_new] = by_name.emplace(name, file);
    if (!is_new)
      return invalid_argument(fmt::format(
          "--license_file {} and --license_file {}: both would be {}/{}; give one of them another name",
          other->second, file, kLicensesFolder, name));
  }
  return {};
}

Status check_words(const Context& context, const PublishRequest& request) {
  if (request.checkpoints < 0)
    return invalid_argument(fmt::format("--checkpoints {}: use 0 or more", request.checkpoints));
  if (request.without_ledger && !request.cache.empty())
    return invalid_argument("--without_ledger leaves out what --cache names; leave one of them out");
  if (request.without_model && (!request.dtype.empty() || request.merge_lora))
    return invalid_argument(
        "--without_model leaves out what --dtype and --merge_lora are about; leave them out");
  if (request.license && !is_plain(*request.license, "-._+"))
    return invalid_argument(
        fmt::format("--license {}: use an identifier such as apache-2.0", *request.license));
  if (request.base_model && !is_plain(*request.base_model, "-._/"))
    return invalid_argument(
        fmt::format("--base_model {}: use a name such as owner/model", *request.base_model));
  RETURN_IF_ERROR(check_licenses(context.fs, request.license_files));
  return convert::check_is_new(context.fs, request.out);
}

Result<Material> open_material(const Context& context, const PublishRequest& request) {
  io::FileSystem& fs = context.fs;
  Material out;
  ASSIGN_OR_RETURN(out.threads, default_threads());
  if (!request.sign.empty()) {
    ASSIGN_OR_RETURN(out.key, SigningKey::read(fs, request.sign));
  }
  ASSIGN_OR_RETURN(out.view, page::read_view(fs, request.run, context.models, kBins));
  const int64_t step = out.view.chain.newest_checkpoint();
  if (step < 0)
    return not_found(
        fmt::format("{}: its chain names no checkpoint yet, so there is no state to publish", request.run));
  ASSIGN_OR_RETURN(out.steps, choose_steps(fs, request.run, out.view.chain, step, request.checkpoints));
  if (request.without_ledger) return out;
  if (!out.view.config)
    return corrupt(
        fmt::format("{}: its config.yaml cannot be read: {}", request.run, "ostro inspect says why"));
  auto data = train::open_run_data(fs, request.run, *out.view.config, out.view.chain, request.cache);
  if (!data.ok())
    return Error(data.error().code(), data.error().message() +
                                          ". The ledger needs it: hashes of the rows that were trained on. "
                                          "--without_ledger publishes without");
  out.stores = data->stores;
  return out;
}

std::string programs_json(const PublishRequest& request, const std::optional<chain::RunRecord>& record) {
  nlohmann::json out = {{"published", nlohmann::json::parse(program_json(request.version))},
                        {"trained", nlohmann::json::array()}};
  if (record)
    for (const chain::Session& s : record->sessions)
      if (s.to_step > s.from_step)
        out["trained"].push_back({{"source_commit", s.source_commit},
                                  {"binary_sha256", s.binary_sha256},
                                  {"compiler", s.compiler},
                                  {"from_step", s.from_step},
                                  {"to_step", s.to_step}});
  return chain::canonical_text(out);
}

Status write_licenses(io::FileSystem& fs, const PublishRequest& request, const std::string& place,
                      BundleManifest& manifest) {
  manifest.license = request.license;
  if (request.license_files.empty()) return {};
  const std::string folder = io::join_path(place, kLicensesFolder);
  RETURN_IF_ERROR(fs.make_dirs(folder));
  for (const std::string& file : request.license_files) {
    const std::string name = io::base_name(file);
    manifest.license_files.push_back(io::join_path(kLicensesFolder, name));
    RETURN_IF_ERROR(copy_file(fs, file, io::join_path(folder, name), [](int64_t) {}));
  }
  std::sort(manifest.license_files.begin(), manifest.license_files.end());
  return {};
}

Status export_weights(const Context& context, const PublishRequest& request, const BundleManifest& manifest,
                      const std::string& place) {
  convert::ExportRequest weights;
  weights.checkpoint = io::join_path(io::join_path(request.run, checkpoint::kCheckpointsFolder),
                                     checkpoint::step_directory(manifest.chain.step));
  weights.to = "hf", weights.out = place, weights.dtype = request.dtype;
  weights.shard_bytes = request.shard_bytes, weights.merge_lora = request.merge_lora;
  RETURN_IF_ERROR(convert::export_model(context, weights));
  return {};
}

// The program that gives the loss of each token, for programs that lack the model's code.
Status write_score_program(io::FileSystem& fs, const PublishRequest& request, const Material& material,
                           const std::string& place) {
  if (!material.view.config)
    return corrupt(
        fmt::format("--score: the config.yaml of {} cannot be read; ostro inspect says why", request.run));
  const train::TrainConfig& config = *material.view.config;
  ASSIGN_OR_RETURN(const auto tokenizer,
                   train::open_run_tokenizer(fs, request.run, config, material.view.chain.genesis()));
  return fs.write_file(io::join_path(io::join_path(place, kRecordFolder), kScoreFile),
                       ir::print(train::held_out_program(config, tokenizer->vocab_size())));
}

Status write_bundle(const Context& context, const PublishRequest& request, const Material& material,
                    const std::string& place, BundleManifest& manifest) {
  io::FileSystem& fs = context.fs;
  const chain::Chain& chain = material.view.chain;
  ASSIGN_OR_RETURN(manifest.chain, facts_of(chain, chain.newest_checkpoint()));
  RETURN_IF_ERROR(fs.make_dirs(place));
  if (!request.without_model) RETURN_IF_ERROR(export_weights(context, request, manifest, place));
  manifest.checkpoints = material.steps;
  manifest.has_moments = !request.parameters_only;
  RETURN_IF_ERROR(copy_record(fs, request.run, chain, {material.steps, manifest.has_moments},
                              io::join_path(place, kRecordFolder), context.progress));
  if (request.score) RETURN_IF_ERROR(write_score_program(fs, request, material, place));
  if (material.stores) {
    const std::string folder = io::join_path(place, kLedgerFolder);
    RETURN_IF_ERROR(fs.make_dirs(folder));
    ASSIGN_OR_RETURN(manifest.ledger,
                     write_ledger_files(fs, *material.stores, folder, material.threads, context.progress));
  }
  RETURN_IF_ERROR(write_licenses(fs, request, place, manifest));
  manifest.made_by = programs_json(request, material.view.record);
  RETURN_IF_ERROR(
      fs.write_file(io::join_path(place, kCardFile),
                    model_card(material.view, manifest, request.base_model, material.key.has_value())));
  ASSIGN_OR_RETURN(const std::vector<std::string> files, files_below(fs, place));
  for (auto& [path, sum] :
       hash_files(fs, place, files, material.threads, context.progress, "hashing files")) {
    ASSIGN_OR_RETURN(manifest.files[path], std::move(sum));
  }
  RETURN_IF_ERROR(write_manifest(fs, place, {kManifestFile, manifest_text(manifest), manifest.files},
                                 material.key ? &*material.key : nullptr, request.time_request));
  return fs.sync_tree(place);
}

}  // namespace

std::string program_json(const std::string& version) {
  return chain::canonical_text({{"version", version},
                                {"source_commit", chain::source_commit()},
                                {"binary_sha256", chain::binary_sha256()},
                                {"compiler", chain::compiler_name()}});
}

Result<std::vector<std::string>> remarks_of(const BundleAudit& audit, const char* noun,
                                            const std::string& place, const std::string& out) {
  std::vector<std::string> remarks;
  for (const audit::Finding& finding : audit.findings) {
    std::string text = audit::finding_text(finding);
    for (size_t at = 0; (at = text.find(place, at)) != std::string::npos; at += out.size())
      text.replace(at, place.size(), out);
    remarks.push_back(std::move(text));
  }
  if (audit.verdict() == audit::Verdict::kDiffers)
    return corrupt(fmt::format("nothing was published: the {} would be refused: {}", noun, remarks.front()));
  return remarks;
}

Result<Published> publish(const Context& context, const PublishRequest& request) {
  RETURN_IF_ERROR(check_words(context, request));
  ASSIGN_OR_RETURN(const Material material, open_material(context, request));
  Published out;
  RETURN_IF_ERROR(convert::make_whole(
      context.fs, request.out,
      [&](const std::string& place) -> Status {
        RETURN_IF_ERROR(write_bundle(context, request, material, place, out.manifest));
        BundleOptions options;
        options.record_only = request.without_model;
        ASSIGN_OR_RETURN(const BundleAudit audit, check_bundle(context, place, options));
        ASSIGN_OR_RETURN(out.remarks, remarks_of(audit, "bundle", place, io::clean_path(request.out)));
        return {};
      },
      ".publishing"));
  ASSIGN_OR_RETURN(out.size, size_below(context.fs, request.out));
  if (material.key) out.key = material.key->public_key().fingerprint();
  out.replay = replay_text(material.view.chain, out.manifest, material.view.record);
  return out;
}

}  // namespace ostro::bundle
