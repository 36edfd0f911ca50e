#include "ostro/audit/record/initial.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ostro/audit/record/check_checkpoints.h"
#include "ostro/audit/record/witness.h"
#include "ostro/base/log.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/origin.h"
#include "ostro/chain/version.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/checkpoint/save.h"
#include "ostro/io/files/path.h"
#include "ostro/nn/adapters.h"
#include "ostro/numerics/arrays.h"
#include "ostro/train/options/shown_config.h"
#include "ostro/train/programs/programs.h"

namespace ostro::audit {
namespace {

using checkpoint::Checkpoint;
using checkpoint::TensorSpec;
using runtime::Buffer;

constexpr const char* kKey = "trainer.initialize_from";
// Options of which only training, or how texts are cut, depends.
constexpr const char* kNotOfParameters[] = {"model.seq_len",
                                            "model.z_loss_weight",
                                            "model.initializer_range",
                                            "model.mup_base_dim",
                                            "model.router_z_loss_coef",
                                            "model.router_aux_loss_coef",
                                            "model.router_bias_update_rate",
                                            "adapter.target_modules"};

// Refuses what the chain above it contradicts.
Status check_chain(io::FileSystem& fs, const Checkpoint& source, const models::ModelChoices& models) {
  ASSIGN_OR_RETURN(const auto run, run_of_checkpoint(fs, source.path()));
  if (!run) return Status();
  const std::string path = io::join_path(*run, chain::kChainFile);
  ASSIGN_OR_RETURN(chain::Chain chain, chain::read_chain(fs, path));
  const auto evidence = Witness(std::move(chain), path, models).check(fs, source);
  return evidence.ok() ? Status() : evidence.error();
}

// The values of a tensor in another dtype: f32 -> bf16 by rounding to nearest even, bf16 -> f32 exactly.
Result<Buffer> converted(const Buffer& from, ir::DType dtype) {
  if (from.shape().dtype == dtype) return from;
  Buffer to = Buffer::empty(from.shape().with_dtype(dtype));
  if (dtype == ir::DType::bf16 && from.shape().dtype == ir::DType::f32) {
    numerics::narrow(from.as<float>(), to.mutable_bytes());
    return to;
  }
  if (dtype == ir::DType::f32 && from.shape().dtype == ir::DType::bf16) {
    numerics::widen(from.bytes(), to.mutable_bytes());
    return to;
  }
  return unsupported(fmt::format("{} cannot become {}", from.shape().str(), ir::dtype_name(dtype)));
}

// The tensor with the axes of `want`.
Result<Buffer> read_tensor(const Checkpoint& source, int64_t at, const ir::Shape& want) {
  const TensorSpec& spec = source.manifest().tensors[static_cast<size_t>(at)];
  const std::optional<ir::DType> dtype = ir::parse_dtype(spec.dtype);
  ir::Shape held = want;
  if (dtype) held.dtype = *dtype;
  std::vector<std::string> axes;
  io::Extents shape;
  for (const ir::Axis& a : want.axes) axes.push_back(a.name), shape.push_back(a.size);
  if (!dtype || spec.axes != axes || spec.shape != shape)
    return invalid_argument(fmt::format("{}: {} is {} in {} but {} in the model; is it of another model?",
                                        kKey, spec.path, spec.type_str(), source.path(), want.str()));
  Buffer buffer = Buffer::empty(held);
  RETURN_IF_ERROR(source.read(at, buffer.mutable_bytes()));
  return converted(buffer, want.dtype);
}

// Warns of options that change what the parameters mean and no shape: rope, activation, the scale of an
// adapter.
void warn_of_other_options(const Checkpoint& source, const train::TrainConfig& config) {
  const std::string& path = source.path();
  const auto its_own = train::parse_train_config(source.manifest().info.config, path, config.model.choices());
  if (!its_own.ok()) {
    log_warning(fmt::format("{}: its options cannot be compared: {}", kKey, its_own.error().message()));
    return;
  }
  std::vector<std::string> different;
  const bool both = train::lora_spec(its_own->adapter) && train::lora_spec(config.adapter);
  for (const std::string& line :
       chain::object_differences(config::canonical_config(*its_own), config::canonical_config(config))) {
    const auto begins = [&](const char* key) { return line.starts_with(key); };
    if (std::ranges::any_of(kNotOfParameters, begins)) continue;
    if (begins("model.") || (both && begins("adapter."))) different.push_back(line);
  }
  if (!different.empty())
    log_warning(fmt::format(
        "{}: the parameters of {} were made with other options (the configuration's are used): {}", kKey,
        path, fmt::join(different, "; ")));
}

}  // namespace

Result<std::optional<std::string>> take_parameters(io::FileSystem& fs, const train::TrainConfig& config,
                                                   const std::string& from, const train::StateArrays& arrays,
                                                   train::State& state) {
  const auto found = checkpoint::find_checkpoints(fs, from);
  if (!found.ok()) return found.error().with_context(kKey);
  const std::string& path = found->front();
  ASSIGN_OR_RETURN(const Checkpoint source, Checkpoint::open(fs, path));
  RETURN_IF_ERROR(check_chain(fs, source, config.model.choices()));
  for (const TensorSpec& spec : source.manifest().tensors) {
    if (!spec.path.starts_with("model/")) continue;
    if (spec.dtype == ir::dtype_name(ir::DType::i8))
      return unsupported(fmt::format(
          "{}: {} in {} is int8, and nothing trains int8; import the model with --dtype f32 or bf16", kKey,
          spec.path, path));
    bool known = false;
    for (size_t k = 0; k < arrays.n; ++k) known |= arrays.paths[k] == spec.path;
    if (!known)
      return invalid_argument(
          nn::is_adapter(spec.path)
              ? fmt::format(
                    "{}: {} has the adapter {}, which this model has not; merge it first (ostro export "
                    "--merge_lora), or set adapter as its run did",
                    kKey, path, spec.path)
              : fmt::format("{}: {} holds {}, which this model has not; is it of another model?", kKey, path,
                            spec.path));
  }
  warn_of_other_options(source, config);
  size_t drawn = 0;
  for (size_t k = 0; k < arrays.n; ++k) {
    int64_t at = source.find(arrays.paths[k]);
    // The model of a run that keeps means of its weights is made of these.
    if (const int64_t mean = source.find(train::optimizer_path(optim::kAverage, arrays.paths[k]));
        mean >= 0 && source.manifest().info.step > 0)
      at = mean;
    if (at < 0 && nn::is_adapter(arrays.paths[k])) {
      ++drawn;
      continue;
    }
    if (at < 0)
      return invalid_argument(fmt::format("{}: the model's {} is not in {}", kKey, arrays.paths[k], path));
    ASSIGN_OR_RETURN(state.params[k], read_tensor(source, at, arrays.shapes[k]));
  }
  log_info(fmt::format("beginning with the {} parameters of {} (state {}){}", arrays.n - drawn, path,
                       source.manifest().name.substr(0, 12),
                       drawn > 0 ? fmt::format(", and {} of a new adapter", drawn) : ""));
  return chain::read_origin(fs, path);
}

Result<std::string> save_initial(io::FileSystem& fs, const std::string& run_directory,
                                 const train::TrainConfig& config, const train::StateArrays& arrays,
                                 const train::State& state) {
  const std::string root = io::join_path(run_directory, kInitialFolder);
  RETURN_IF_ERROR(fs.make_dirs(root));
  checkpoint::Info info;
  info.kind = checkpoint::Kind::kPermanent;
  info.numerics_version = chain::kNumericsVersion;
  info.config = train::config_to_show(config);
  ASSIGN_OR_RETURN(const auto tensors, snapshot(state, arrays, train::cell_boxes(config)));
  ASSIGN_OR_RETURN(const checkpoint::Saved saved, checkpoint::save(fs, root, info, tensors));
  return saved.name;
}

namespace {

// The run's initial state, whose manifest is that which the genesis names.
struct InitialState {
  std::string path;
  Checkpoint checkpoint;
};
Result<InitialState> open_initial(io::FileSystem& fs, const std::string& run_directory,
                                  const chain::GenesisEntry& genesis) {
  const std::string path =
      io::join_path(io::join_path(run_directory, kInitialFolder), checkpoint::step_directory(genesis.step()));
  auto opened = Checkpoint::open(fs, path);
  if (!opened.ok()) return opened.error().with_context("the run's initial state, which its genesis names");
  const checkpoint::Manifest& manifest = opened->manifest();
  if (manifest.info.step != genesis.step())
    return corrupt(fmt::format("{}: its state is of step {}, but the run began after step {} ({})", path,
                               manifest.info.step, genesis.step(), chain::kChainFile));
  if (manifest.name != *genesis.initial)
    return corrupt(fmt::format("{}: its state is {}, but the run began with {} ({})", path, manifest.name,
                               *genesis.initial, chain::kChainFile));
  return InitialState{path, std::move(*opened)};
}

// An error for a state without moments that steps should follow from.
Status can_begin(io::FileSystem& fs, const InitialState& initial, const chain::GenesisEntry& genesis) {
  if (genesis.step() == 0 || !lacks_moments(fs, initial.checkpoint)) return {};
  return not_found(
      fmt::format("{}: the state that the run begins with has no moments (they were left out: ostro publish "
                  "--parameters_only), so no step follows from it",
                  initial.path));
}

}  // namespace

Result<std::string> initial_checkpoint(io::FileSystem& fs, const std::string& run_directory,
                                       const chain::GenesisEntry& genesis) {
  ASSIGN_OR_RETURN(const InitialState initial, open_initial(fs, run_directory, genesis));
  return initial.path;
}

Status check_initial(io::FileSystem& fs, const std::string& run_directory,
                     const chain::GenesisEntry& genesis) {
  if (!genesis.initial) return {};
  ASSIGN_OR_RETURN(const InitialState initial, open_initial(fs, run_directory, genesis));
  return can_begin(fs, initial, genesis);
}

Result<train::State> load_initial(io::FileSystem& fs, const std::string& run_directory,
                                  const chain::GenesisEntry& genesis, const train::StateArrays& arrays) {
  ASSIGN_OR_RETURN(const InitialState initial, open_initial(fs, run_directory, genesis));
  RETURN_IF_ERROR(can_begin(fs, initial, genesis));
  const std::string& path = initial.path;
  if (!lacks_moments(fs, initial.checkpoint)) {
    ASSIGN_OR_RETURN(train::RestoredState restored, train::load_state(fs, path, arrays, {}));
    return std::move(restored.state);
  }
  const train::StateArrays of_parameters = train::parameter_arrays(
      {arrays.paths.begin(), arrays.paths.begin() + static_cast<std::ptrdiff_t>(arrays.n)},
      {arrays.shapes.begin(), arrays.shapes.begin() + static_cast<std::ptrdiff_t>(arrays.n)});
  ASSIGN_OR_RETURN(train::RestoredState restored, train::load_state(fs, path, of_parameters, {}));
  for (size_t i = arrays.n; i < arrays.size(); ++i)
    restored.state.optimizer.push_back(Buffer::zeros(arrays.shapes[i]));
  return std::move(restored.state);
}

}  // namespace ostro::audit
