#include "ostro/convert/import/import_grok.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>

#include "ostro/chain/version.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/convert/import/new_directory.h"
#include "ostro/convert/import/origin_file.h"
#include "ostro/convert/import/training_yaml.h"
#include "ostro/grok/convert/import.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/train/options/config.h"

namespace ostro::convert {
namespace {

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<grok::LayerRange> layer_range(const std::string& text, int64_t layers) {
  if (text.empty()) return grok::LayerRange{0, layers};
  const size_t colon = text.find(':');
  if (colon != std::string::npos) {
    const auto first = whole_number(std::string_view(text).substr(0, colon)),
               last = whole_number(std::string_view(text).substr(colon + 1));
    if (first && last) return grok::LayerRange{*first, *last};
  }
  return invalid_argument(fmt::format("--layers {}: use FIRST:END, END not included, for example 0:4", text));
}

Result<grok::Held> held_as(const std::string& dtype) {
  if (dtype == "f32") return grok::Held::kF32;
  if (dtype == "bf16") return grok::Held::kBf16;
  if (dtype == "int8") return grok::Held::kInt8;
  return invalid_argument(fmt::format("--dtype {}: use f32, bf16 or int8", dtype));
}

Result<models::Rounding> rounding_as(const GrokImport& request) {
  if (request.rounding == "ostro") return models::Rounding::kOstro;
  if (request.rounding != "released")
    return invalid_argument(fmt::format("--rounding {}: use ostro or released", request.rounding));
  if (request.dtype == "f32")
    return invalid_argument(
        "--rounding released: the released program computes in bf16, and --dtype is f32; add --dtype bf16 or "
        "int8");
  return models::Rounding::kReleased;
}

// A configuration whose model is the release's. Its data are for the reader to fill in.
Result<train::TrainConfig> import_config(const models::DecoderOptions& model, const GrokImport& request,
                                         const models::ModelChoices& models) {
  train::TrainConfig config(models);
  config.model.choose("grok");
  auto* options =
      dynamic_cast<models::ModelOptionsOf<models::DecoderOptions, models::Decoder>*>(&config.model.value());
  if (options == nullptr) return unsupported("model.type grok is not a decoder in this program");
  options->options = model;
  config.data.train_urls = {"corpus/**/*.txt"};
  config.data.tokenizer = "tokenizer.json";
  config.trainer.id = io::base_name(io::clean_path(request.out));
  config.trainer.mp = request.dtype == "f32" ? "f32" : "p=f32,c=bfloat16";
  RETURN_IF_ERROR(config.resolve());
  return config;
}

// Where the checkpoint is from: the files of the layers that were taken, and what the directory says of
// itself.
Result<Origin> origin_of(const Context& context, const GrokImport& request, const grok::Release& release,
                         const grok::LayerRange& layers) {
  std::vector<std::string> names;
  for (const grok::Leaf& leaf : release.leaves())
    if (leaf.layer < 0 || (leaf.layer >= layers.first && leaf.layer < layers.last))
      names.push_back(leaf.file);
  Origin out{.format = "grok", .layers = std::pair(layers.first, layers.last)};
  for (size_t i = 0; i < names.size(); ++i) {
    ASSIGN_OR_RETURN(out.files[names[i]],
                     io::file_sha256(context.fs, io::join_path(release.directory(), names[i])));
    context.progress.show("hashing", static_cast<double>(i + 1) / static_cast<double>(names.size()));
  }
  const std::string config =
      request.config.empty() ? io::join_path(release.directory(), "config.json") : request.config;
  ASSIGN_OR_RETURN(const bool has_config, context.fs.exists(config));
  if (has_config) {
    ASSIGN_OR_RETURN(out.files["config.json"], io::file_sha256(context.fs, config));
  }
  // An export has it beside the folder of the tensors.
  const std::string folder = io::clean_path(release.directory());
  RETURN_IF_ERROR(take_provenance(context.fs, io::parent_path(folder), out, io::base_name(folder) + "/"));
  return out;
}

// The tokenizer that is named, or that an export has put beside the folder of the tensors. Empty: none.
Result<std::string> tokenizer_of(io::FileSystem& fs, const GrokImport& request,
                                 const grok::Release& release) {
  if (!request.tokenizer.empty()) return request.tokenizer;
  std::string path = io::join_path(io::parent_path(io::clean_path(release.directory())), "tokenizer.json");
  ASSIGN_OR_RETURN(const bool there, fs.exists(path));
  return there ? path : std::string();
}

}  // namespace

Result<std::string> import_grok(const Context& context, const GrokImport& request) {
  ASSIGN_OR_RETURN(const grok::Held held, held_as(request.dtype));
  ASSIGN_OR_RETURN(const models::Rounding rounding, rounding_as(request));
  io::FileSystem& fs = context.fs;
  ASSIGN_OR_RETURN(const grok::Release release, grok::Release::open(fs, request.directory, request.config));
  grok::ImportOptions options;
  ASSIGN_OR_RETURN(options.layers, layer_range(request.layers, release.shape().layers));
  options.held = held;
  RETURN_IF_ERROR(grok::check_import(release, options));
  ASSIGN_OR_RETURN(models::DecoderOptions model, grok::decoder_options(release.shape(), options.layers));
  model.rounding = rounding;

  const int64_t rows = release.shape().vocab;
  std::optional<tokenizer::Tokenizer> tokenizer;
  ASSIGN_OR_RETURN(const std::string tokenizer_path, tokenizer_of(fs, request, release));
  if (!tokenizer_path.empty()) {
    ASSIGN_OR_RETURN(tokenizer, tokenizer::load_tokenizer(fs, tokenizer_path));
    if (tokenizer->vocab_size() > rows)
      return invalid_argument(fmt::format(
          "--tokenizer: {} has {} tokens, but the embedding of {} has {} rows; is it of another model?",
          tokenizer_path, tokenizer->vocab_size(), release.directory(), rows));
  }
  // Rows without a token are kept, also for a tokenizer that is named later.
  if (!tokenizer || tokenizer->vocab_size() < rows) model.vocab_size = rows;
  RETURN_IF_ERROR(check_is_new(fs, request.out));

  checkpoint::Info info;
  info.kind = checkpoint::Kind::kPermanent;
  info.numerics_version = chain::kNumericsVersion;
  ASSIGN_OR_RETURN(const train::TrainConfig config, import_config(model, request, context.models));
  info.config = config::resolved_yaml(config);
  options.progress = [&context](int64_t done, int64_t total) {
    context.progress.show("importing", static_cast<double>(done) / static_cast<double>(total));
  };
  checkpoint::Saved saved;
  const Status made = make_whole(fs, request.out, [&](const std::string& place) -> Status {
    ASSIGN_OR_RETURN(
        saved, grok::import_release(fs, release, io::join_path(place, checkpoint::kCheckpointsFolder), info,
                                    options));
    ASSIGN_OR_RETURN(Origin origin, origin_of(context, request, release, options.layers));
    origin.state = saved.name;
    RETURN_IF_ERROR(write_origin(fs, place, origin));
    train::TrainConfig training = config;
    training.data.tokenizer = io::join_path(io::absolute_path(request.out), "tokenizer.json");
    RETURN_IF_ERROR(io::write_file_atomically(fs, io::join_path(place, kTrainFile),
                                              training_yaml(training, request.directory, request.out)));
    if (!tokenizer) return {};
    return tokenizer::save_tokenizer(fs, *tokenizer, io::join_path(place, "tokenizer.json"));
  });
  context.progress.end();
  if (!made.ok()) return made.error();
  return fmt::format("{}: {}, layers {} to {}, {} (state {})\n",
                     io::join_path(io::join_path(request.out, checkpoint::kCheckpointsFolder),
                                   checkpoint::step_directory(0)),
                     shape_title(release.shape()), options.layers.first, options.layers.last - 1,
                     request.dtype, saved.name.substr(0, 12));
}

}  // namespace ostro::convert
