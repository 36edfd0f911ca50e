#include "ostro/audit/beginning.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "ostro/audit/record/check_checkpoints.h"
#include "ostro/audit/record/fork.h"
#include "ostro/audit/record/initial.h"
#include "ostro/audit/record/maker.h"
#include "ostro/audit/record/witness.h"
#include "ostro/base/sha256.h"
#include "ostro/chain/config_file.h"
#include "ostro/checkpoint/part_reader.h"
#include "ostro/io/arrays/box.h"
#include "ostro/io/files/path.h"

namespace ostro::audit {
namespace {

Sha256Digest hash_of_zeros(int64_t bytes) {
  static const std::vector<std::byte> kZeros(1 << 20);
  Sha256 hash;
  for (int64_t left = bytes; left > 0; left -= std::ssize(kZeros))
    hash.update(std::span(kZeros).first(static_cast<size_t>(std::min<int64_t>(left, std::ssize(kZeros)))));
  return hash.finish();
}

// Whether the hashes of the array's cells are those of zeros.
bool is_zero(const checkpoint::TensorSpec& spec, const checkpoint::CellHashes& hashes) {
  const std::vector<checkpoint::Box> cells = checkpoint::cells_of(spec);
  std::map<int64_t, Sha256Digest> zeros;  // by bytes
  for (size_t c = 0; c < cells.size(); ++c) {
    const int64_t bytes = io::product(cells[c].shape) * checkpoint::dtype_size(spec.dtype);
    auto at = zeros.find(bytes);
    if (at == zeros.end()) at = zeros.emplace(bytes, hash_of_zeros(bytes)).first;
    if (at->second != hashes[c]) return false;
  }
  return true;
}

// Compares every array of the state with its hashes; with `lacks_moments` those of the weights. Of a run
// that is no fork, those of the optimizer must be zero: a run that begins has updated nothing.
Status check_arrays(io::FileSystem& fs, const checkpoint::Checkpoint& state, bool is_fork,
                    bool lacks_moments) {
  const checkpoint::Manifest& manifest = state.manifest();
  std::vector<std::string> paths;
  for (const checkpoint::TensorSpec& spec : manifest.tensors)
    if (!lacks_moments || is_weight_array(spec.path)) paths.push_back(spec.path);
  ASSIGN_OR_RETURN(const auto reader, checkpoint::PartReader::open(fs, state, paths));
  RETURN_IF_ERROR(reader.check({}));
  if (is_fork) return {};
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const checkpoint::TensorSpec& spec = manifest.tensors[i];
    if (spec.path.starts_with("optimizer/") && !is_zero(spec, manifest.cells[i]))
      return corrupt(
          fmt::format("{}: {} is not zero, so this state has been trained before: the run is a fork, and its "
                      "genesis names no run that it is a fork of",
                      state.path(), spec.path));
  }
  return {};
}

// The state in initial/, with the chain of the parent as a witness where there is one.
Status check_initial(io::FileSystem& fs, const std::string& run, const chain::GenesisEntry& genesis,
                     const Witness* parent, bool parameters_only) {
  ASSIGN_OR_RETURN(const std::string path, initial_checkpoint(fs, run, genesis));
  ASSIGN_OR_RETURN(const checkpoint::Checkpoint state, checkpoint::Checkpoint::open(fs, path));
  // Before its arrays are read: a manifest may name sizes that no memory has.
  if (parent != nullptr) RETURN_IF_ERROR(parent->check_manifest(state.manifest(), path));
  RETURN_IF_ERROR(
      check_arrays(fs, state, genesis.fork.has_value(), parameters_only && lacks_moments(fs, state)));
  if (parent != nullptr) RETURN_IF_ERROR(parent->check(fs, state));
  return {};
}

// What changed from the parent to the fork is what a fork may change.
Status check_options(io::FileSystem& fs, const std::string& run, const chain::GenesisEntry& genesis,
                     const chain::Chain& parent, const std::string& where,
                     const models::ModelChoices& models) {
  const std::string path = chain::config_file(fs, run);
  ASSIGN_OR_RETURN(const std::string yaml, fs.read_file(path));
  const auto base = train::parse_train_config(yaml, path, models);
  if (!base.ok()) return unsupported(base.error().message());
  ASSIGN_OR_RETURN(const std::vector<Period> periods, periods_of(*base, parent, where));
  ASSIGN_OR_RETURN(const train::TrainConfig before,
                   config_of_period(*base, period_that_made(periods, genesis.fork->step).config));
  ASSIGN_OR_RETURN(const train::TrainConfig after, config_of_period(*base, genesis.config));
  const Status allowed = check_fork(before, after, genesis.fork->step);
  return allowed.ok() ? allowed : corrupt(fmt::format("the genesis: {}", allowed.error().message()));
}

// The chain of a parent or maker in the folder; nothing: it is not there.
Result<std::optional<chain::Chain>> chain_in(io::FileSystem& fs, const std::string& folder) {
  const std::string path = io::join_path(folder, chain::kChainFile);
  ASSIGN_OR_RETURN(const bool there, fs.exists(path));
  if (!there) return std::optional<chain::Chain>();
  ASSIGN_OR_RETURN(chain::Chain chain, chain::read_chain(fs, path));
  return std::optional(std::move(chain));
}

// The chains below `folder`, which holds that of the run with `genesis`: each names what the next began with,
// and none contradicts itself.
Status check_ancestry(io::FileSystem& fs, const std::string& folder, const chain::GenesisEntry& genesis) {
  RETURN_IF_ERROR(check_claims(genesis, io::join_path(folder, chain::kChainFile)));
  if (genesis.fork) {
    const std::string above = io::join_path(folder, kParentFolder);
    ASSIGN_OR_RETURN(const auto chain, chain_in(fs, above));
    if (chain) {
      RETURN_IF_ERROR(check_parent(genesis, *chain, io::join_path(above, chain::kChainFile)));
      RETURN_IF_ERROR(check_ancestry(fs, above, chain->genesis()));
    }
  }
  if (genesis.maker) {
    const std::string above = io::join_path(folder, kMakerFolder);
    ASSIGN_OR_RETURN(const auto chain, chain_in(fs, above));
    if (chain) {
      RETURN_IF_ERROR(check_maker(*genesis.maker, *chain, io::join_path(above, chain::kChainFile)));
      RETURN_IF_ERROR(check_ancestry(fs, above, chain->genesis()));
    }
  }
  return {};
}

// The text about a run that began with parameters, and what it leaves open.
Status describe_parameters(io::FileSystem& fs, const std::string& run, const chain::GenesisEntry& genesis,
                           Beginning& out) {
  out.text = genesis.origin ? "the parameters in initial/; its genesis says that they were imported"
                            : "the parameters of a checkpoint, in initial/";
  if (genesis.origin)
    out.not_shown.push_back(
        "how the parameters were made that the run began with: its genesis names files with their hashes, "
        "and no file was compared");
  if (!genesis.maker) return {};
  const std::string published =
      fmt::format("the published state {} of the run {}", genesis.maker->state, genesis.maker->head);
  std::string why = "what the run began with is not as it should be";
  if (out.findings.empty()) {
    ASSIGN_OR_RETURN(const std::string path, initial_checkpoint(fs, run, genesis));
    ASSIGN_OR_RETURN(const checkpoint::Manifest initial, checkpoint::read_manifest(fs, path));
    auto compared = check_made(fs, run, genesis, initial);
    if (compared.ok() && compared->empty()) {
      out.text = fmt::format("{}: its manifest, in maker/, has the parameters in initial/", published);
      out.not_shown.clear();  // how they were made the maker's chain says
      return {};
    }
    if (compared.ok()) why = *compared;
    if (!compared.ok()) out.findings.push_back(finding_of(compared.error()));
  }
  out.text = fmt::format("the parameters in initial/; its genesis says that they are of {}", published);
  out.not_shown.push_back(
      fmt::format("that the run began with {}: its genesis says so, and {}", published, why));
  return {};
}

}  // namespace

Result<Beginning> check_beginning(io::FileSystem& fs, const std::string& run, const chain::Chain& chain,
                                  const std::string& parent, const models::ModelChoices& models,
                                  bool parameters_only) {
  const chain::GenesisEntry& genesis = chain.genesis();
  if (!parent.empty() && !genesis.fork)
    return invalid_argument(
        fmt::format("--parent {}: {} is no fork, its genesis names no other run; leave it out", parent, run));
  Beginning out;
  const auto add = [&](const Status& status) {
    if (!status.ok()) out.findings.push_back(finding_of(status.error()));
    return status.ok();
  };
  add(check_ancestry(fs, run, genesis));
  std::optional<Witness> witness;
  std::string where;
  if (genesis.fork) {
    const std::string folder = parent.empty() ? io::join_path(run, kParentFolder) : parent;
    where = io::join_path(folder, chain::kChainFile);
    auto theirs = chain_in(fs, folder);
    if (!theirs.ok()) {
      if (!parent.empty()) add(theirs.error());  // else check_ancestry() has said so
    } else if (!*theirs && !parent.empty()) {
      add(not_found(fmt::format("--parent {}: there is no {}", parent, where)));
    } else if (!*theirs) {
      out.findings.push_back(
          {Verdict::kIncomplete,
           fmt::format(
               "{} is missing, so nothing ties the fork to the run {}; name its directory with --parent",
               where, genesis.fork->head)});
    } else if (parent.empty() || add(check_parent(genesis, **theirs, where))) {
      add(check_options(fs, run, genesis, **theirs, where, models));
      witness.emplace(std::move(**theirs), where, models);
    }
  }
  if (genesis.initial) {
    const Status state = check_initial(fs, run, genesis, witness ? &*witness : nullptr, parameters_only);
    if (!state.ok() && state.error().code() == ErrorCode::kNotFound)
      out.findings.push_back({Verdict::kIncomplete, state.error().message()});
    else
      add(state);
  }
  if (genesis.fork) {
    const std::string fork =
        fmt::format("a fork of {} after step {}", genesis.fork->head, genesis.fork->step);
    out.text = witness && out.findings.empty() ? fmt::format("{}: {} names its state", fork, where)
                                               : "its genesis says, " + fork;
  } else if (genesis.initial) {
    RETURN_IF_ERROR(describe_parameters(fs, run, genesis, out));
  }
  return out;
}

}  // namespace ostro::audit
