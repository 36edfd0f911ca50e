#include "ostro/audit/record/witness.h"

#include <fmt/format.h>

#include <filesystem>

#include "ostro/audit/record/fork.h"
#include "ostro/base/parallel.h"
#include "ostro/chain/canonical.h"
#include "ostro/checkpoint/part_reader.h"
#include "ostro/checkpoint/save.h"
#include "ostro/io/arrays/box.h"
#include "ostro/io/files/path.h"
#include "ostro/numerics/fingerprint.h"
#include "ostro/train/step/fingerprints.h"

namespace ostro::audit {
namespace {

using checkpoint::Manifest;
using checkpoint::TensorSpec;

Error forged(const std::string& where, const std::string& how) {
  return corrupt(fmt::format("{}: forged, or of another run: {}", where, how));
}

constexpr int kThreads = 2;

bool is_parameter(const TensorSpec& spec) { return !spec.path.starts_with("optimizer/"); }

std::array<int64_t, 2> lanes_of(const TensorSpec& spec, std::span<const std::byte> bytes) {
  const int64_t item = checkpoint::dtype_size(spec.dtype),
                length = spec.shape.empty() ? 1 : spec.shape.back();
  const int64_t rows = length > 0 ? spec.bytes() / item / length : 0;
  const numerics::Fingerprint print = numerics::fingerprint_array(rows, length, item, bytes);
  return {static_cast<int64_t>(print.lane[0]), static_cast<int64_t>(print.lane[1])};
}

// The lanes of a tensor, read in pieces of whole rows where these are not too long.
Result<std::array<int64_t, 2>> lanes_of(const checkpoint::PartReader& reader, size_t tensor) {
  constexpr int64_t kPiece = int64_t{16} << 20;
  const TensorSpec& spec = reader.spec(tensor);
  const int64_t item = checkpoint::dtype_size(spec.dtype);
  checkpoint::Extents piece = checkpoint::chunk_of_cell(spec.shape, item, kPiece);
  if (!piece.empty() && piece.back() < spec.shape.back())  // words of a fingerprint are not cut
    piece.back() = std::max<int64_t>(8, piece.back() / 8 * 8);
  const int64_t length = spec.shape.empty() ? 1 : spec.shape.back();
  std::vector<std::byte> memory;
  numerics::Fingerprint print;
  RETURN_IF_ERROR(io::for_each_index(io::grid_of(spec.shape, piece), [&](const auto& index) -> Status {
    checkpoint::PartReader::Part part{tensor, piece, piece, {}};
    int64_t row = 0, first = 0, rows = 1, elements = 1;  // of the piece: its first element, and its size
    for (size_t d = 0; d < index.size(); ++d) {
      const bool is_last = d + 1 == index.size();
      part.start[d] = index[d] * piece[d];
      part.shape[d] = std::min(piece[d], spec.shape[d] - part.start[d]);
      if (is_last)
        first = part.start[d], elements = part.shape[d];
      else
        row = row * spec.shape[d] + part.start[d], rows *= part.shape[d];
    }
    memory.resize(static_cast<size_t>(rows * elements * item));
    part.bytes = memory;
    RETURN_IF_ERROR(reader.read({&part, 1}));
    const auto row_bytes = static_cast<size_t>(elements * item);
    for (int64_t r = 0; r < rows; ++r)
      numerics::add_row_segment(
          print, row + r, length, item, first,
          std::span<const std::byte>(memory).subspan(static_cast<size_t>(r) * row_bytes, row_bytes));
    return {};
  }));
  return std::array<int64_t, 2>{static_cast<int64_t>(print.lane[0]), static_cast<int64_t>(print.lane[1])};
}

// Of all parameters, after their own hashes. The memory does not grow with them.
Result<std::vector<std::array<int64_t, 2>>> prints_of(io::FileSystem& fs,
                                                      const checkpoint::Checkpoint& checkpoint) {
  std::vector<std::string> paths;
  for (const TensorSpec& spec : checkpoint.manifest().tensors)
    if (is_parameter(spec)) paths.push_back(spec.path);
  ASSIGN_OR_RETURN(const auto reader, checkpoint::PartReader::open(fs, checkpoint, paths));
  RETURN_IF_ERROR(reader.check({}));
  std::vector<std::array<int64_t, 2>> prints(paths.size());
  RETURN_IF_ERROR(parallel_for(std::ssize(paths), kThreads, [&](int64_t i) -> Status {
    ASSIGN_OR_RETURN(prints[static_cast<size_t>(i)], lanes_of(reader, static_cast<size_t>(i)));
    return {};
  }));
  return prints;
}

}  // namespace

bool is_due(const train::TrainConfig& config, int64_t step) {
  return step == config.trainer.num_train_steps || config.trainer.checkpointer.is_kept(step);
}

Witness::Witness(chain::Chain chain, std::string path, models::ModelChoices models)
    : chain_(std::move(chain)), path_(std::move(path)), models_(std::move(models)) {}

Status Witness::check_step(const Manifest& manifest, const std::string& where) const {
  const int64_t step = manifest.info.step;
  if (const auto named = checkpoint::step_of_directory(io::base_name(io::clean_path(where)));
      named && *named != step)
    return forged(where, fmt::format("its manifest is of step {}", step));
  const chain::GenesisEntry& genesis = chain_.genesis();
  if (manifest.info.numerics_version != genesis.numerics_version)
    return forged(where, fmt::format("numerics version {}, the run's is {}", manifest.info.numerics_version,
                                     genesis.numerics_version));
  if (step > chain_.last_step())
    return forged(where,
                  fmt::format("it is of step {}, but {} ends at step {}", step, path_, chain_.last_step()));
  const chain::ChainLink* link =
      step == chain::entry_step(genesis) ? &chain_.links.front() : chain_.find_step(step);
  if (link == nullptr) return forged(where, fmt::format("{} has no step {}", path_, step));
  if (manifest.info.chain_head != link->hash)
    return forged(where, fmt::format("its chain head is {}, {} has {} at step {}", manifest.info.chain_head,
                                     path_, link->hash, step));
  return {};
}

Status Witness::check_config(const Manifest& manifest, const std::string& where) const {
  const auto config =
      train::parse_train_config(manifest.info.config, where + "/manifest.json: config", models_);
  if (!config.ok())
    return unsupported(
        fmt::format("{}: this program does not know its config, so it cannot compare it with {}: {}", where,
                    path_, config.error().message()));
  ASSIGN_OR_RETURN(const std::vector<Period> periods, periods_of(*config, chain_, path_));
  const std::string &run = period_that_made(periods, manifest.info.step).config,
                    its = train::canonical_text(*config);
  if (run == its) return {};
  return forged(where, fmt::format("its config is not the run's ({} there, the manifest here): {}", path_,
                                   fmt::join(chain::object_differences(run, its), "; ")));
}

Result<Evidence> Witness::check_manifest(const Manifest& manifest, const std::string& where) const {
  const int64_t step = manifest.info.step;
  // The state that the run began with is of no step of this chain: what made it is another's business.
  if (const chain::GenesisEntry& genesis = chain_.genesis();
      genesis.initial && step == genesis.step() && manifest.name == *genesis.initial &&
      manifest.info.numerics_version == genesis.numerics_version)
    return Evidence::kName;
  RETURN_IF_ERROR(check_step(manifest, where));
  const std::string* name = chain_.find_checkpoint(step);
  if (name != nullptr && *name != manifest.name)
    return forged(where,
                  fmt::format("its state is {}, {} has {} for step {}", manifest.name, path_, *name, step));
  RETURN_IF_ERROR(check_config(manifest, where));
  if (name != nullptr) return Evidence::kName;
  // The entry of a state that is kept for good is written before the next step's.
  if (manifest.info.kind == checkpoint::Kind::kPermanent && step < chain_.last_step())
    return forged(where,
                  fmt::format("it is a permanent checkpoint, but {} has none of step {}", path_, step));
  return step == chain::entry_step(chain_.genesis()) ? Evidence::kNothing : Evidence::kFingerprint;
}

Status Witness::check_parameters(const Manifest& manifest, const std::string& where,
                                 const train::ParameterBytes& bytes) const {
  std::vector<std::array<int64_t, 2>> prints;
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    if (!is_parameter(manifest.tensors[i])) continue;
    ASSIGN_OR_RETURN(const std::span<const std::byte> tensor, bytes(i));
    prints.push_back(lanes_of(manifest.tensors[i], tensor));
  }
  return check_prints(manifest, where, prints);
}

Status Witness::check_prints(const Manifest& manifest, const std::string& where,
                             const std::vector<std::array<int64_t, 2>>& prints) const {
  const chain::ChainLink* link = chain_.find_step(manifest.info.step);
  if (link == nullptr) return forged(where, fmt::format("{} has no step {}", path_, manifest.info.step));
  // The fingerprint is of a text with a line a parameter, which `measured` ends: no part of it may pass for
  // another.
  if (manifest.info.measured.find('\n') != std::string::npos)
    return forged(where, "its \"measured\" is more than one line");
  std::vector<train::ParameterPrint> parameters;
  for (const TensorSpec& spec : manifest.tensors)
    if (is_parameter(spec) && parameters.size() < prints.size())
      parameters.push_back({spec.path, spec.type_str(), prints[parameters.size()]});
  const std::string& recorded = std::get<chain::StepEntry>(link->entry).state;
  const std::string found = train::state_fingerprint(parameters, manifest.info.measured);
  if (found == recorded) return {};
  return forged(where, fmt::format("the fingerprint of its parameters is {}, {} has {} for step {}{}", found,
                                   path_, recorded, manifest.info.step,
                                   manifest.info.measured.empty()
                                       ? " (its manifest has no \"measured\", of which the "
                                         "fingerprint is a part; earlier versions wrote none)"
                                       : ""));
}

Result<Evidence> Witness::check(io::FileSystem& fs, const checkpoint::Checkpoint& checkpoint) const {
  const Manifest& manifest = checkpoint.manifest();
  ASSIGN_OR_RETURN(const Evidence evidence, check_manifest(manifest, checkpoint.path()));
  // A name that the chain has still has to be that of the step's parameters: who writes both a checkpoint and
  // its entry anew leaves the step's fingerprint. Runs of chain format 1 have manifests without "measured",
  // of which the fingerprint is a part.
  const bool lacks_measured = manifest.info.measured.empty() && chain_.genesis().format == 1;
  if (evidence == Evidence::kFingerprint ||
      (evidence == Evidence::kName && !lacks_measured && chain_.find_step(manifest.info.step) != nullptr)) {
    ASSIGN_OR_RETURN(const auto prints, prints_of(fs, checkpoint));
    RETURN_IF_ERROR(check_prints(manifest, checkpoint.path(), prints));
  }
  return evidence;
}

train::StateChecks Witness::checks() const {
  train::StateChecks out;
  out.manifest = [this](const Manifest& manifest, const std::string& where) -> Result<Status> {
    const Result<Evidence> evidence = check_manifest(manifest, where);
    if (!evidence.ok()) return Status(evidence.error());
    if (*evidence == Evidence::kNothing)
      return Status(
          corrupt(fmt::format("{}: {} says nothing of the state before the first step", where, path_)));
    return Status();
  };
  out.parameters = [this](const Manifest& manifest, const std::string& where,
                          const train::ParameterBytes& bytes) {
    if (chain_.find_checkpoint(manifest.info.step) != nullptr) return Status();  // its name says it all
    return check_parameters(manifest, where, bytes);
  };
  return out;
}

Result<std::optional<std::string>> run_of_checkpoint(io::FileSystem& fs, const std::string& checkpoint) {
  std::vector<std::string> places;
  const std::string plain = io::clean_path(checkpoint);
  // A ".." after a symbolic link leads elsewhere than its name says; object stores have no links.
  const bool goes_up = ("/" + plain + "/").find("/../") != std::string::npos;
  if (plain.find('/') != std::string::npos && (!io::path_scheme(plain).empty() || !goes_up))
    places.push_back(plain);
  if (io::path_scheme(checkpoint).empty()) {
    places.push_back(io::absolute_path(checkpoint));
    std::error_code absent;
    if (const auto real = std::filesystem::canonical(checkpoint, absent); !absent)
      places.push_back(real.string());
  }
  for (const std::string& place : places) {
    const std::string run = io::parent_path(io::parent_path(place));
    ASSIGN_OR_RETURN(const bool has_chain, fs.exists(io::join_path(run, chain::kChainFile)));
    if (has_chain) return std::optional<std::string>(run);
    // Its programs are beside every chain: without the chain, nothing says that the checkpoint is the run's.
    ASSIGN_OR_RETURN(const bool was_run, fs.exists(io::join_path(run, kProgramFile)));
    if (was_run)
      return not_found(
          fmt::format("{} is gone from the directory of a run, and with it what tells whether {} is "
                      "forged. Put it back; to read the checkpoint all the same, add --unchecked",
                      io::join_path(run, chain::kChainFile), checkpoint));
  }
  return std::optional<std::string>();
}

}  // namespace ostro::audit
