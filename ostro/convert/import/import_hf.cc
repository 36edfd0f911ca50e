#include "ostro/convert/import/import_hf.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "ostro/base/log.h"
#include "ostro/chain/version.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/convert/import/new_directory.h"
#include "ostro/convert/import/origin_file.h"
#include "ostro/convert/import/training_yaml.h"
#include "ostro/hf/import.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/io/hub/hub_names.h"
#include "ostro/models/decoder/decoder.h"

namespace ostro::convert {
namespace {

using ImportedModel = models::ModelOptionsOf<models::DecoderOptions, models::Decoder>;

// The configuration that the checkpoint in `out` has: the model, and nothing of a run.
Result<train::TrainConfig> import_config(const hf::Source& source, const std::string& out,
                                         const models::ModelChoices& models) {
  train::TrainConfig config(models);
  config.model.choose(source.model.options.type());
  auto* model = dynamic_cast<ImportedModel*>(&config.model.value());
  OSTRO_CHECK(model != nullptr, "{} is another model", source.model.options.type());
  model->options = source.model.options;
  config.data.tokenizer = io::join_path(io::absolute_path(out), "tokenizer.json");
  config.data.train_urls = {"texts/*.jsonl"};
  // As it was published: bf16 weights are of a model that computes in bf16.
  config.trainer.mp = source.dtype == "BF16" ? "p=f32,c=bfloat16" : "p=f32,c=f32";
  RETURN_IF_ERROR(config.resolve());
  return config;
}

// The checkpoint, and where it is from.
Result<checkpoint::Saved> write_checkpoint(io::FileSystem& fs, const hf::Source& source,
                                           const train::TrainConfig& config, const std::string& place) {
  checkpoint::Info info;
  info.kind = checkpoint::Kind::kPermanent;
  info.numerics_version = chain::kNumericsVersion;
  info.config = config::resolved_yaml(config);
  Origin origin{.format = "hf"};
  ASSIGN_OR_RETURN(origin.files, hf::source_hashes(fs, source.directory));
  RETURN_IF_ERROR(take_provenance(fs, source.directory, origin));
  ASSIGN_OR_RETURN(
      checkpoint::Saved saved,
      hf::import_weights(fs, source, io::join_path(place, checkpoint::kCheckpointsFolder), info));
  origin.state = saved.name;
  RETURN_IF_ERROR(write_origin(fs, place, origin));
  return saved;
}

// The type that all weights have in which every value of the model is; F32 if they have several.
std::string common_dtype(const hf::Source& source) {
  const bool same = std::all_of(source.parts.begin(), source.parts.end(),
                                [&](const hf::SourcePart& p) { return p.tensor->dtype == source.dtype; });
  return same ? source.dtype : "F32";
}

Status write_import(io::FileSystem& fs, const HfImport& request, const hf::Source& source,
                    const train::TrainConfig& config, const std::string& place, checkpoint::Saved& saved) {
  ASSIGN_OR_RETURN(saved, write_checkpoint(fs, source, config, place));
  RETURN_IF_ERROR(hf::copy_companions(fs, source, place));
  RETURN_IF_ERROR(io::write_file_atomically(fs, io::join_path(place, kImportFile),
                                            fmt::format("{{\"dtype\": \"{}\"}}\n", common_dtype(source))));
  return io::write_file_atomically(fs, io::join_path(place, kTrainFile),
                                   training_yaml(config, request.directory, request.out));
}

}  // namespace

Result<std::string> import_hf(const Context& context, const HfImport& request) {
  io::FileSystem& fs = context.fs;
  const std::string out = io::clean_path(request.out);
  RETURN_IF_ERROR(check_is_new(fs, out));
  ASSIGN_OR_RETURN(const hf::Source source, hf::open_source(fs, request.directory, request.tokenizer));
  ASSIGN_OR_RETURN(const train::TrainConfig config, import_config(source, out, context.models));
  checkpoint::Saved saved;
  RETURN_IF_ERROR(make_whole(fs, out, [&](const std::string& place) {
    return write_import(fs, request, source, config, place, saved);
  }));
  if (source.model.is_text_part)
    log_info(fmt::format("{}: only the text part is read; what sees images is left out", request.directory));
  if (!source.model.passed_over.empty())
    log_info(fmt::format("{}: keys without effect here: {}", io::join_path(request.directory, "config.json"),
                         fmt::join(source.model.passed_over, "; ")));
  if (source.model.options.vocab_size)
    log_info(
        fmt::format("{} of {} rows of the embedding have no token in {}: they are parameters like others "
                    "and are never sampled (model.vocab_size)",
                    source.model.vocab - source.tokenizer->vocab_size(), source.model.vocab,
                    request.tokenizer.empty() ? request.directory : request.tokenizer));
  return fmt::format("{}: {} ({}), {} parameters, state {}\n", out, source.model.options.type(), source.dtype,
                     source.parameters(), saved.name);
}

Result<std::optional<std::string>> import_beginning(const Context& context, const std::string& from,
                                                    const std::string& to) {
  io::FileSystem& fs = context.fs;
  ASSIGN_OR_RETURN(const bool is_there, fs.exists(from));
  if (!is_there) RETURN_IF_ERROR(io::local_or_hub(from, io::HubFiles::kModel, "trainer.initialize_from"));
  ASSIGN_OR_RETURN(const bool is_model, fs.exists(io::join_path(from, "config.json")));
  if (!is_model) return std::optional<std::string>();
  RETURN_IF_ERROR(fs.remove_all(to));
  ASSIGN_OR_RETURN(const hf::Source source, hf::open_source(fs, from, ""));
  ASSIGN_OR_RETURN(const train::TrainConfig config, import_config(source, to, context.models));
  RETURN_IF_ERROR(fs.make_dirs(to));
  const auto saved = write_checkpoint(fs, source, config, to);
  if (!saved.ok()) {
    (void)fs.remove_all(to);
    return saved.error();
  }
  return std::optional(
      io::join_path(io::join_path(to, checkpoint::kCheckpointsFolder), checkpoint::step_directory(0)));
}

Result<BorrowedImport> BorrowedImport::take(const Context& context, train::TrainConfig& config) {
  BorrowedImport out(context.fs);
  std::optional<std::string>& from = config.trainer.initialize_from;
  if (!from) return out;
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  if (failed)
    return Error(ErrorCode::kIo, fmt::format("TMPDIR: no folder for the import of {}: {}; set it to one",
                                             *from, failed.message()));
  out.place_ = (folder / fmt::format("ostro-import-{}", ::getpid())).string();
  ASSIGN_OR_RETURN(const auto imported, import_beginning(context, *from, out.place_));
  if (imported) from = *imported;
  return out;
}

BorrowedImport::~BorrowedImport() {
  if (!place_.empty()) (void)fs_->remove_all(place_);
}

}  // namespace ostro::convert
