#include "ostro/trained/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/audit/record/initial.h"
#include "ostro/audit/record/witness.h"
#include "ostro/base/log.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/origin.h"
#include "ostro/chain/version.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/config/config.h"
#include "ostro/io/files/path.h"
#include "ostro/models/decoder/by_layer.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/numerics/arrays.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/other_tokenizer.h"
#include "ostro/train/step/snapshot.h"
#include "ostro/trained/opened_model.h"

namespace ostro::trained {
namespace {

// A checkpoint to read, and the witness that can check it.
struct Source {
  std::string path;
  std::optional<std::string> run;         // the directory with the chain above it
  std::optional<audit::Witness> witness;  // nothing: its own hashes are enough

  train::StateChecks checks() const { return witness ? witness->checks() : train::StateChecks(); }
};

// The newest checkpoint of the chain must be the newest one there is.
Status check_newest(const audit::Witness& witness, const std::string& run, const std::string& newest) {
  const int64_t recorded = witness.chain().newest_checkpoint();
  const auto there = checkpoint::step_of_directory(io::base_name(newest));
  if (!there || *there >= recorded) return {};
  return not_found(fmt::format(
      "{} is missing, but {} lists it",
      io::join_path(io::join_path(run, checkpoint::kCheckpointsFolder), checkpoint::step_directory(recorded)),
      witness.path()));
}

// An error about a checkpoint that was not taken, with what else can be done.
Error refused(const Error& error, const std::string& older) {
  return Error(error.code(),
               fmt::format("{}; {}`ostro verify RUN` shows which checkpoints are good; --unchecked skips the "
                           "check against the chain",
                           error.message(), older.empty() ? "" : fmt::format("an older one is {}; ", older)));
}

// Without a chain: the first candidate that `load` can use; damage is passed over loudly, the last error is
// returned.
template <typename Load>
auto load_first(const std::vector<std::string>& paths, const std::optional<std::string>& run,
                const Load& load) -> decltype(load(Source())) {
  for (size_t i = 0;; ++i) {
    auto loaded = load(Source{paths[i], run, std::nullopt});
    if (loaded.ok() || loaded.error().code() != ErrorCode::kCorrupt || i + 1 == paths.size()) return loaded;
    log_warning(fmt::format("{}; falling back to {}", loaded.error().message(), paths[i + 1]));
  }
}

template <typename Load>
auto load_from(io::FileSystem& fs, const std::string& where, const models::ModelChoices& models, Trust trust,
               const Load& load) -> decltype(load(Source())) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, checkpoint::find_checkpoints(fs, where));
  auto above = audit::run_of_checkpoint(fs, paths[0]);
  if (!above.ok() && (trust != Trust::kUnchecked || above.error().code() != ErrorCode::kNotFound))
    return above.error();
  const std::optional<std::string> run = above.ok() ? *above : std::nullopt;
  if (!run || trust == Trust::kUnchecked) {
    // An import begins chains; what it is of lies beside it.
    std::optional<std::string> origin;
    if (!run && trust == Trust::kChain) {
      ASSIGN_OR_RETURN(origin, chain::read_origin(fs, paths[0]));
    }
    if (trust == Trust::kChain && !origin)
      log_warning(
          fmt::format("{}: there is no chain to check it against ({} lies two folders above a run's "
                      "checkpoints)",
                      where, chain::kChainFile));
    else if (run && trust == Trust::kUnchecked)
      log_warning(fmt::format("{} is not checked against the chain of {} (--unchecked)", where, *run));
    return load_first(paths, run, load);
  }
  const std::string chain_path = io::join_path(*run, chain::kChainFile);
  const std::string older = paths.size() > 1 ? paths[1] : "";
  auto chain = chain::read_chain(fs, chain_path);
  if (!chain.ok()) return refused(chain.error(), "");
  audit::Witness witness(std::move(*chain), chain_path, models);
  if (paths[0] != where)
    if (const Status newest = check_newest(witness, where, paths[0]); !newest.ok())
      return refused(newest.error(), paths[0]);
  auto loaded = load(Source{paths[0], run, std::move(witness)});
  if (!loaded.ok() && loaded.error().code() == ErrorCode::kCorrupt) return refused(loaded.error(), older);
  return loaded;
}

// The parameters, and the means of them that the checkpoint has (optim::kAverage).
train::StateArrays with_means(const checkpoint::Manifest& manifest, const models::ModelFunctions& model) {
  train::StateArrays arrays = train::parameter_arrays(model.paths, model.shapes);
  for (size_t k = 0; k < arrays.n; ++k) {
    const std::string path = train::optimizer_path(optim::kAverage, arrays.paths[k]);
    const bool there = std::any_of(manifest.tensors.begin(), manifest.tensors.end(),
                                   [&](const checkpoint::TensorSpec& spec) { return spec.path == path; });
    if (!there) continue;
    arrays.paths.push_back(path);
    arrays.shapes.push_back(arrays.shapes[k]);
    arrays.parameter.push_back(k);
  }
  return arrays;
}

// The dtype in which the model holds each of these arrays is that of the checkpoint where a bf16 one (an
// import) has the values of f32 parameters.
void take_stored_dtypes(const checkpoint::Manifest& manifest, std::vector<ir::Shape>& shapes,
                        const std::vector<std::string>& paths) {
  for (const checkpoint::TensorSpec& spec : manifest.tensors)
    for (size_t k = 0; k < paths.size(); ++k)
      if (paths[k] == spec.path && spec.dtype == "bf16" && shapes[k].dtype == ir::DType::f32)
        shapes[k].dtype = ir::DType::bf16;
}

// How parameters are held that a model's layers alone read (UseOptions::as_read).
struct HeldAsRead {
  std::vector<bool> narrow;  // f32 ones that are read in bf16

  // Gives those the dtype bf16, in which they are then read. Not where the chain has a fingerprint of the
  // parameters alone, for which they are needed as they are stored.
  void take_dtypes(const Source& source, int64_t step, train::StateArrays& arrays) const {
    arrays.mapped = true;
    if (source.witness && source.witness->chain().find_checkpoint(step) == nullptr) return;
    arrays.rounded = true;
    for (size_t k = 0; k < arrays.size(); ++k)
      if (narrow[arrays.parameter[k]]) arrays.shapes[k].dtype = ir::DType::bf16;
  }
};

// bf16 elements as f32, where the model wants them so.
runtime::Buffer widened(const runtime::Buffer& from, const ir::Shape& want) {
  if (from.shape().dtype == want.dtype) return from;
  runtime::Buffer to = runtime::Buffer::empty(want);
  OSTRO_CHECK(from.shape().dtype == ir::DType::bf16 && want.dtype == ir::DType::f32, "{} as {}",
              from.shape().str(), want.str());
  numerics::widen(from.bytes(), to.mutable_bytes());
  return to;
}

Result<Parameters> read_parameters(io::FileSystem& fs, const Source& source,
                                   const models::ModelFunctions& model,
                                   const std::optional<HeldAsRead>& held = {}) {
  ASSIGN_OR_RETURN(const checkpoint::Checkpoint found, checkpoint::Checkpoint::open(fs, source.path));
  train::StateArrays arrays = with_means(found.manifest(), model);
  take_stored_dtypes(found.manifest(), arrays.shapes, arrays.paths);
  if (held) held->take_dtypes(source, found.manifest().info.step, arrays);
  ASSIGN_OR_RETURN(train::RestoredState restored,
                   train::load_state(fs, source.path, arrays, source.checks()));
  std::vector<runtime::Buffer> weights;
  for (const size_t k : train::evaluated_arrays(arrays)) {
    const size_t of = arrays.parameter[k];
    const runtime::Buffer& read = k < arrays.n || restored.state.step == 0
                                      ? restored.state.params[of]
                                      : restored.state.optimizer[k - arrays.n];
    weights.push_back(held && held->narrow[of] ? read : widened(read, model.shapes[of]));
  }
  return Parameters{std::move(weights), restored.state.step, restored.path, restored.name};
}

Result<std::string> find_tokenizer(io::FileSystem& fs, const Source& source, const std::string& given) {
  if (!given.empty()) return given;
  const std::string parent = io::parent_path(io::clean_path(source.path));
  const std::string copy = io::join_path(source.run.value_or(io::parent_path(parent)), "tokenizer.json");
  ASSIGN_OR_RETURN(const bool exists, fs.exists(copy));
  if ((!source.run && io::base_name(parent) != checkpoint::kCheckpointsFolder) || !exists)
    return not_found(fmt::format(
        "{}: not inside a run with a tokenizer.json; name the tokenizer with --tokenizer", source.path));
  return copy;
}

// A model that talks with other words than it was trained on would be another one.
Status check_tokenizer(const Source& source, const tokenizer::Tokenizer& tokenizer, const std::string& path) {
  if (!source.witness) return {};
  const std::string& hash = source.witness->chain().genesis().tokenizer_hash;
  if (tokenizer.hash() == hash) return {};
  return invalid_argument(
      fmt::format("{}: another tokenizer than the run's: hash {}, {} has {}; name the run's with "
                  "--tokenizer, or add --unchecked",
                  path, tokenizer.hash(), source.witness->path(), hash));
}

// The configuration that a checkpoint was made with.
Result<train::TrainConfig> read_config(io::FileSystem& fs, const std::string& path,
                                       const models::ModelChoices& models) {
  ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, checkpoint::read_manifest(fs, path));
  return train::parse_train_config(manifest.info.config,
                                   io::join_path(path, checkpoint::kManifestName) + ": config", models);
}

// Warns if the checkpoint was made with other model options. Some options (rope, activation) change what the
// model computes but no shape; without the warning the loss would be wrong without a visible reason.
void warn_of_other_model(io::FileSystem& fs, const std::string& path, const train::TrainConfig& config) {
  const auto its_own = read_config(fs, path, config.model.choices());
  if (!its_own.ok()) {
    log_warning(fmt::format("its options cannot be compared: {}", its_own.error().message()));
    return;
  }
  std::vector<std::string> different;
  for (const std::string& line :
       chain::object_differences(config::canonical_config(*its_own), config::canonical_config(config)))
    if (line.starts_with("model.")) different.push_back(line);
  if (!different.empty())
    log_warning(
        fmt::format("{} was trained with other options of the model (the configuration's are used): {}", path,
                    fmt::join(different, "; ")));
}

// Says in the model's options what only the checkpoint knows: that matrices are int8, and in how many groups
// of rows their scales are.
void take_stored_matrices(const checkpoint::Manifest& manifest, train::TrainConfig& config) {
  auto* decoder =
      dynamic_cast<models::ModelOptionsOf<models::DecoderOptions, models::Decoder>*>(&config.model_options());
  if (decoder == nullptr) return;
  for (const checkpoint::TensorSpec& spec : manifest.tensors)
    for (size_t i = 0; i < spec.axes.size(); ++i)
      if (spec.axes[i] == nn::kScaleGroupsAxis)
        decoder->options.int8_row_groups = std::max(decoder->options.int8_row_groups, spec.shape[i]);
}

// Grok-1's own rounding is that of a program that computes in bf16 (models/decoder/released.h).
Status check_rounding(const UseOptions& use, const train::MixedPrecision& wanted,
                      const train::TrainConfig& config) {
  const auto* decoder =
      models::model_options_as<models::DecoderOptions, models::Decoder>(config.model_options());
  if (decoder == nullptr || !decoder->released() || wanted == train::Compute::kBf16) return {};
  return invalid_argument(
      fmt::format("--mp {}: model.rounding is released, which is that of a program that computes in bf16; "
                  "leave --mp out",
                  use.mp));
}

// Takes the precision that a command wants. Returns LoadedModel::other_mp.
Result<std::string> take_precision(const UseOptions& use, train::TrainConfig& config) {
  if (use.mp.empty()) return std::string();
  const auto wanted = train::parse_precision(use.mp);
  if (!wanted.ok()) return wanted.error().with_context(fmt::format("--mp {}", use.mp));
  ASSIGN_OR_RETURN(const train::MixedPrecision trained, train::parse_precision(config.trainer.mp));
  if (*wanted == trained) return std::string();
  config.trainer.mp = train::precision_word(*wanted);
  if (const Status resolved = config.resolve(); !resolved.ok())
    return resolved.error().with_context(fmt::format("--mp {}", use.mp));
  RETURN_IF_ERROR(check_rounding(use, *wanted, config));
  return config.trainer.mp;
}

Status take_context(const UseOptions& use, train::TrainConfig& config) {
  if (!use.seq_len) return {};
  if (*use.seq_len < kLeastContext || *use.seq_len > kMostContext)
    return invalid_argument(fmt::format("--seq_len {}: model.seq_len has to be {} to {}", *use.seq_len,
                                        kLeastContext, kMostContext));
  const int64_t own = config.model_options().seq_len();
  if (*use.seq_len == own) return {};
  auto* decoder =
      dynamic_cast<models::ModelOptionsOf<models::DecoderOptions, models::Decoder>*>(&config.model_options());
  if (decoder == nullptr)
    return unsupported(fmt::format("--seq_len {}: model.type {} is no decoder, and has a context of its own",
                                   *use.seq_len, config.model_options().type()));
  decoder->options.seq_len = *use.seq_len;
  const Status resolved = decoder->options.resolve();
  if (!resolved.ok()) return resolved.error().with_context(fmt::format("--seq_len {}", *use.seq_len));
  if (use.warns && *use.seq_len > own)
    log_warning(
        fmt::format("--seq_len {}: the model's own context is {} (model.seq_len); what it says beyond "
                    "that may be worse",
                    *use.seq_len, own));
  return {};
}

// Texts begin as those that the model was trained on. A run keeps that beside its copy of the tokenizer,
// unless it was made before texts got their tokenizer's beginning token.
void take_beginning(const Source& source, bool is_copy, std::optional<bool> enforce_bos,
                    tokenizer::Tokenizer& tokenizer) {
  if (enforce_bos) return tokenizer.set_begins_texts(*enforce_bos);
  if (!source.run || !is_copy || tokenizer.begins_texts() || tokenizer.spec().prefix.empty()) return;
  tokenizer.set_begins_texts(false);
  log_warning(fmt::format(
      "{}: the run was made before Ostro put the tokenizer's beginning token in front of texts; prompts and "
      "texts get none here either (data.enforce_bos)",
      *source.run));
}

// All but the parameters.
Result<LoadedModel> read_all_but_parameters(io::FileSystem& fs, const Source& source,
                                            const std::string& tokenizer_path,
                                            const models::ModelChoices& models, const UseOptions& use) {
  if (source.witness) {
    // Before its config is used for anything.
    ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, checkpoint::read_manifest(fs, source.path));
    const auto evidence = source.witness->check_manifest(manifest, source.path);
    if (!evidence.ok()) return evidence.error();
  }
  ASSIGN_OR_RETURN(train::TrainConfig config, read_config(fs, source.path, models));
  ASSIGN_OR_RETURN(const checkpoint::Manifest stored, checkpoint::read_manifest(fs, source.path));
  if (stored.info.numerics_version != chain::kNumericsVersion)
    return unsupported(fmt::format(
        "{}: the checkpoint has numerics version {}; this program computes version {}, so use the "
        "Ostro that made it",
        source.path, stored.info.numerics_version, chain::kNumericsVersion));
  take_stored_matrices(stored, config);
  ASSIGN_OR_RETURN(std::string other_mp, take_precision(use, config));
  RETURN_IF_ERROR(take_context(use, config));
  LoadedModel out{std::move(config), {}, {}, {}, {}, std::move(other_mp)};
  ASSIGN_OR_RETURN(out.tokenizer_path, find_tokenizer(fs, source, tokenizer_path));
  ASSIGN_OR_RETURN(tokenizer::Tokenizer tokenizer, tokenizer::load_tokenizer(fs, out.tokenizer_path));
  if (tokenizer_path.empty()) RETURN_IF_ERROR(check_tokenizer(source, tokenizer, out.tokenizer_path));
  if (!tokenizer_path.empty())
    train::warn_of_other_tokenizer(fs, "--tokenizer", source.path, tokenizer, tokenizer_path);
  take_beginning(source, tokenizer_path.empty(), out.config.data.enforce_bos, tokenizer);
  out.tokenizer = std::make_shared<tokenizer::Tokenizer>(std::move(tokenizer));
  out.functions = train::run_model(out.config, out.tokenizer->vocab_size(), train::ModelUse::kEvaluation);
  RETURN_IF_ERROR(train::check_vocabulary(out.functions, out.tokenizer->vocab_size()));
  // A parameter that is stored in bf16 can stay so: no bit of a loss changes.
  if (train::compute_dtype(out.config) == ir::DType::bf16) {
    std::vector<ir::Shape> held = out.functions.shapes;
    take_stored_dtypes(stored, held, out.functions.paths);
    for (size_t k = 0; k < held.size(); ++k)
      if (!out.functions.matrix_of[k].read_in_f32) out.functions.shapes[k] = held[k];
  }
  return out;
}

HeldAsRead held_as_read(const LoadedModel& model) {
  const std::optional<models::LayerFunctions> layers = layers_of(model);
  const bool narrows = layers && layers->dtype == ir::DType::bf16;
  HeldAsRead out;
  for (size_t k = 0; k < model.functions.shapes.size(); ++k)
    out.narrow.push_back(narrows && model.functions.shapes[k].dtype == ir::DType::f32 &&
                         !layers->read_in_f32[k] && !layers->integers[k] &&
                         !nn::is_adapter(model.functions.paths[k]));
  return out;
}

Result<LoadedModel> read_model(io::FileSystem& fs, const Source& source, const std::string& tokenizer_path,
                               const models::ModelChoices& models, const UseOptions& use) {
  ASSIGN_OR_RETURN(LoadedModel out, read_all_but_parameters(fs, source, tokenizer_path, models, use));
  ASSIGN_OR_RETURN(out.parameters,
                   read_parameters(fs, source, out.functions,
                                   use.as_read ? std::optional(held_as_read(out)) : std::nullopt));
  return out;
}

// A tensor of the checkpoint must be what the model holds; bf16 may stand for f32.
Status check_tensor(const checkpoint::TensorSpec& spec, const ir::Shape& held, const std::string& path) {
  std::vector<std::string> axes;
  checkpoint::Extents shape;
  for (const ir::Axis& axis : held.axes) {
    axes.push_back(axis.name);
    shape.push_back(axis.size);
  }
  const std::string dtype(ir::dtype_name(held.dtype));
  if (spec.axes == axes && spec.shape == shape && (spec.dtype == dtype || spec.dtype == "bf16")) return {};
  return invalid_argument(
      fmt::format("{}: {} is {}, the model has {}", path, spec.path, spec.type_str(), held.str()));
}

// The arrays of the checkpoint that are the parameters in evaluation, in the order of the model's.
std::vector<std::string> evaluated_paths(const checkpoint::Manifest& manifest,
                                         const models::ModelFunctions& model) {
  const train::StateArrays arrays = with_means(manifest, model);
  std::vector<std::string> paths;
  for (const size_t k : train::evaluated_arrays(arrays))
    paths.push_back(arrays.paths[manifest.info.step == 0 ? arrays.parameter[k] : k]);
  return paths;
}

Result<OpenedModel> open_source(io::FileSystem& fs, const Source& source, const std::string& tokenizer_path,
                                const models::ModelChoices& models, const UseOptions& use) {
  ASSIGN_OR_RETURN(LoadedModel model, read_all_but_parameters(fs, source, tokenizer_path, models, use));
  ASSIGN_OR_RETURN(const checkpoint::Checkpoint found, checkpoint::Checkpoint::open(fs, source.path));
  const checkpoint::Manifest& manifest = found.manifest();
  if (source.witness) {
    ASSIGN_OR_RETURN(const audit::Evidence evidence, source.witness->check_manifest(manifest, source.path));
    if (evidence != audit::Evidence::kName)
      return unsupported(fmt::format(
          "{}: its chain has a fingerprint of this state and no name, and comparing it needs all parameters "
          "in memory; name a checkpoint of a step that trainer.checkpointer.keep lists, or add --unchecked",
          source.path));
  }
  std::optional<models::LayerFunctions> layers = layers_of(model);
  if (!layers)
    return unsupported(fmt::format("{}: model.type {} cannot run layer by layer; only decoders can",
                                   source.path, model.config.model_options().type()));
  const std::vector<std::string> paths = evaluated_paths(manifest, model.functions);
  ASSIGN_OR_RETURN(checkpoint::PartReader reader, checkpoint::PartReader::open(fs, found, paths));
  for (size_t k = 0; k < paths.size(); ++k)
    RETURN_IF_ERROR(check_tensor(reader.spec(k), model.functions.shapes[k], source.path));
  model.parameters = {{}, manifest.info.step, source.path, manifest.name};
  return OpenedModel{std::move(model), *std::move(layers), std::move(reader)};
}

}  // namespace

std::optional<models::LayerFunctions> layers_of(const LoadedModel& model, int64_t adapters) {
  const auto* decoder =
      models::model_options_as<models::DecoderOptions, models::Decoder>(model.config.model_options());
  if (decoder == nullptr) return {};
  auto lora = train::lora_spec(model.config.adapter);
  OSTRO_CHECK(adapters == 0 || lora, "{} adapters of a model that has none", adapters);
  if (lora) lora->adapters = adapters;
  return models::decoder_by_layer(decoder->for_evaluation(),
                                  static_cast<int64_t>(model.tokenizer->vocab_size()),
                                  train::precision(model.config), lora, model.functions.paths);
}

void take_stored_matrices(io::FileSystem& fs, const std::string& where, train::TrainConfig& config) {
  if (where == "init") return;
  const auto paths = checkpoint::find_checkpoints(fs, where);
  if (!paths.ok()) return;
  const auto manifest = checkpoint::read_manifest(fs, paths->front());
  if (manifest.ok()) take_stored_matrices(*manifest, config);
}

Result<Parameters> load_or_init(io::FileSystem& fs, const std::string& where,
                                const train::TrainConfig& config, const models::ModelFunctions& model,
                                runtime::Engine& engine, Trust trust) {
  if (where != "init") {
    ASSIGN_OR_RETURN(Parameters loaded,
                     load_from(fs, where, config.model.choices(), trust,
                               [&](const Source& source) { return read_parameters(fs, source, model); }));
    warn_of_other_model(fs, loaded.path, config);
    return loaded;
  }
  ASSIGN_OR_RETURN(const train::CanonicalPrograms programs, train::make_programs(config, model));
  ASSIGN_OR_RETURN(train::State state, train::initial_state(programs, engine, config.trainer.seed));
  if (config.trainer.initialize_from)
    RETURN_IF_ERROR(audit::take_parameters(fs, config, *config.trainer.initialize_from,
                                           train::state_arrays(programs), state));
  ASSIGN_OR_RETURN(auto values, runtime::all_to(std::move(state.params), runtime::host_memory()));
  return Parameters{std::move(values), 0, "init", ""};
}

Result<LoadedModel> load_model(io::FileSystem& fs, const std::string& where,
                               const std::string& tokenizer_path, const models::ModelChoices& models,
                               Trust trust, const UseOptions& use) {
  return load_from(fs, where, models, trust,
                   [&](const Source& source) { return read_model(fs, source, tokenizer_path, models, use); });
}

Result<OpenedModel> open_model(io::FileSystem& fs, const std::string& where,
                               const std::string& tokenizer_path, const models::ModelChoices& models,
                               Trust trust, const std::function<Status(const OpenedModel&)>& check,
                               const UseOptions& use) {
  return load_from(fs, where, models, trust, [&](const Source& source) -> Result<OpenedModel> {
    ASSIGN_OR_RETURN(OpenedModel opened, open_source(fs, source, tokenizer_path, models, use));
    if (check) RETURN_IF_ERROR(check(opened));
    return opened;
  });
}

Result<DescribedModel> describe_model(io::FileSystem& fs, const std::string& where,
                                      const models::ModelChoices& models, Trust trust,
                                      const std::string& tokenizer_path, const UseOptions& use) {
  return load_from(fs, where, models, trust, [&](const Source& source) -> Result<DescribedModel> {
    DescribedModel out;
    ASSIGN_OR_RETURN(out.model, read_all_but_parameters(fs, source, tokenizer_path, models, use));
    ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, checkpoint::read_manifest(fs, source.path));
    out.arrays = evaluated_paths(manifest, out.model.functions);
    out.model.parameters = {{}, manifest.info.step, source.path, manifest.name};
    return out;
  });
}

}  // namespace ostro::trained
