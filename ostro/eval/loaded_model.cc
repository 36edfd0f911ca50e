#include "ostro/eval/loaded_model.h"

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/config/config.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/record/canonical.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::eval {
namespace {

constexpr const char* kCheckpoints = "checkpoints";

// The directories that `where` may mean, the best first: itself, or a run's checkpoints from the newest on.
Result<std::vector<std::string>> candidates(io::FileSystem& fs, const std::string& where) {
  ASSIGN_OR_RETURN(const bool is_checkpoint, fs.exists(io::join_path(where, checkpoint::kManifestName)));
  if (is_checkpoint) return std::vector<std::string>{where};
  ASSIGN_OR_RETURN(auto entries, checkpoint::list_checkpoints(fs, io::join_path(where, kCheckpoints)));
  if (entries.empty())
    return not_found(fmt::format("{}: neither a checkpoint (it has no {}) nor a run with one (no {}/step-*)",
                                 where, checkpoint::kManifestName, kCheckpoints));
  std::vector<std::string> paths;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) paths.push_back(entry->path);
  return paths;
}

// The first candidate that `load` can use; damage is passed over loudly, the last error is returned.
template <typename Load>
auto load_first(io::FileSystem& fs, const std::string& where, const Load& load)
    -> decltype(load(std::string())) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, candidates(fs, where));
  for (size_t i = 0;; ++i) {
    auto loaded = load(paths[i]);
    if (loaded.ok() || loaded.error().code() != ErrorCode::kCorrupt || i + 1 == paths.size()) return loaded;
    log_warning(fmt::format("{}; falling back to {}", loaded.error().message(), paths[i + 1]));
  }
}

Result<Parameters> read_parameters(io::FileSystem& fs, const std::string& path,
                                   const models::ModelFunctions& model) {
  ASSIGN_OR_RETURN(train::RestoredState restored,
                   train::load_state(fs, path, model.paths, model.shapes, /*parameters_only=*/true));
  return Parameters{std::move(restored.state.params), restored.state.step, restored.path, restored.name};
}

Result<std::string> find_tokenizer(io::FileSystem& fs, const std::string& checkpoint_path,
                                   const std::string& given) {
  if (!given.empty()) return given;
  const std::string parent = io::parent_path(io::clean_path(checkpoint_path));
  const std::string copy = io::join_path(io::parent_path(parent), "tokenizer.json");
  ASSIGN_OR_RETURN(const bool exists, fs.exists(copy));
  if (io::base_name(parent) != kCheckpoints || !exists)
    return not_found(fmt::format(
        "{}: not inside a run with a tokenizer.json; name the tokenizer with --tokenizer", checkpoint_path));
  return copy;
}

// The configuration that a checkpoint was made with.
Result<train::TrainConfig> read_config(io::FileSystem& fs, const std::string& path,
                                       const train::ModelChoices& models) {
  ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, checkpoint::read_manifest(fs, path));
  return train::parse_train_config(manifest.info.config,
                                   io::join_path(path, checkpoint::kManifestName) + ": config", models);
}

// Options that change what the model computes without changing a shape (rope, activation) would give a wrong
// loss silently.
void warn_of_other_model(io::FileSystem& fs, const std::string& path, const train::TrainConfig& config) {
  const auto its_own = read_config(fs, path, config.model.choices());
  if (!its_own.ok()) {
    log_warning(fmt::format("its options cannot be compared: {}", its_own.error().message()));
    return;
  }
  std::vector<std::string> different;
  for (const std::string& line :
       train::object_differences(config::canonical_config(*its_own), config::canonical_config(config)))
    if (line.starts_with("model.")) different.push_back(line);
  if (!different.empty())
    log_warning(
        fmt::format("{} was trained with other options of the model (the configuration's are used): {}", path,
                    fmt::join(different, "; ")));
}

Result<LoadedModel> read_model(io::FileSystem& fs, const std::string& path, const std::string& tokenizer_path,
                               const train::ModelChoices& models) {
  ASSIGN_OR_RETURN(train::TrainConfig config, read_config(fs, path, models));
  LoadedModel out{std::move(config), {}, {}, {}, {}};
  ASSIGN_OR_RETURN(out.tokenizer_path, find_tokenizer(fs, path, tokenizer_path));
  ASSIGN_OR_RETURN(tokenizer::Tokenizer tokenizer, tokenizer::load_tokenizer(fs, out.tokenizer_path));
  out.tokenizer = std::make_shared<tokenizer::Tokenizer>(std::move(tokenizer));
  out.functions = out.config.model_options().evaluation_functions(out.tokenizer->vocab_size(),
                                                                  train::compute_dtype(out.config));
  ASSIGN_OR_RETURN(out.parameters, read_parameters(fs, path, out.functions));
  return out;
}

}  // namespace

Result<Parameters> load_parameters(io::FileSystem& fs, const std::string& where,
                                   const models::ModelFunctions& model) {
  return load_first(fs, where, [&](const std::string& path) { return read_parameters(fs, path, model); });
}

Result<Parameters> load_or_init(io::FileSystem& fs, const std::string& where,
                                const train::TrainConfig& config, const models::ModelFunctions& model,
                                runtime::Engine& engine) {
  if (where != "init") {
    ASSIGN_OR_RETURN(Parameters loaded, load_parameters(fs, where, model));
    warn_of_other_model(fs, loaded.path, config);
    return loaded;
  }
  ASSIGN_OR_RETURN(const train::CanonicalPrograms programs, train::make_programs(config, model));
  ASSIGN_OR_RETURN(train::State state, train::initial_state(programs, engine, config.trainer.seed));
  return Parameters{std::move(state.params), 0, "init", ""};
}

Result<LoadedModel> load_model(io::FileSystem& fs, const std::string& where,
                               const std::string& tokenizer_path, train::ModelChoices models) {
  return load_first(fs, where,
                    [&](const std::string& path) { return read_model(fs, path, tokenizer_path, models); });
}

}  // namespace ostro::eval
