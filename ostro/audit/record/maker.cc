#include "ostro/audit/record/maker.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/audit/record/fork.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/nn/adapters.h"
#include "ostro/provenance/provenance.h"
#include "ostro/train/programs/state_arrays.h"

namespace ostro::audit {
namespace {

using checkpoint::Manifest;
using checkpoint::TensorSpec;

// The maker that an import's origin names, in words.
std::string source_text(const std::optional<provenance::Source>& source) {
  if (!source) return "no state of Ostro";
  return fmt::format("the state {} of {}", source->state,
                     source->head ? "the run " + *source->head : "a run that it does not name");
}

// The place in RUN/maker of the state's manifest.
std::string manifest_place(const std::string& run, int64_t step) {
  return io::join_path(io::join_path(io::join_path(run, kMakerFolder), checkpoint::kCheckpointsFolder),
                       checkpoint::step_directory(step));
}

Result<Manifest> read_made(io::FileSystem& fs, const std::string& place, const chain::Maker& maker) {
  ASSIGN_OR_RETURN(Manifest manifest, checkpoint::read_manifest(fs, place));
  if (manifest.name == maker.state) return manifest;
  return corrupt(fmt::format("{} is of the state {}, but the run began with the published state {}", place,
                             manifest.name, maker.state));
}

// -1: there is none.
int64_t find_array(const Manifest& manifest, const std::string& path) {
  const auto at = std::find_if(manifest.tensors.begin(), manifest.tensors.end(),
                               [&](const TensorSpec& spec) { return spec.path == path; });
  return at == manifest.tensors.end() ? -1 : at - manifest.tensors.begin();
}

// The array of the state that take_parameters (initial.h) takes a parameter from; -1: there is none.
int64_t array_of(const Manifest& made, const std::string& parameter) {
  const int64_t mean = find_array(made, train::optimizer_path(optim::kAverage, parameter));
  return mean >= 0 && made.info.step > 0 ? mean : find_array(made, parameter);
}

bool is_of_model(const TensorSpec& spec) { return spec.path.starts_with("model/"); }

}  // namespace

Status check_claims(const chain::GenesisEntry& genesis, const std::string& where) {
  if (!genesis.maker && !genesis.origin) return {};
  const char* what = genesis.maker ? "a maker" : "an origin";
  if (genesis.fork)
    return corrupt(fmt::format("{}: its genesis has a fork and {}, but a fork began with its parent's state",
                               where, what));
  if (!genesis.initial)
    return corrupt(
        fmt::format("{}: its genesis has {} and no initial state, so the first weights were drawn "
                    "and are of no other model",
                    where, what));
  if (!genesis.maker || !genesis.origin) return {};
  ASSIGN_OR_RETURN(const auto source, provenance::made_from(*genesis.origin, where));
  if (source && source->head == genesis.maker->head && source->state == genesis.maker->state) return {};
  return corrupt(
      fmt::format("{}: its genesis contradicts itself: the maker is the state {} of the run {}, but "
                  "the origin is from {}",
                  where, genesis.maker->state, genesis.maker->head, source_text(source)));
}

Status check_maker(const chain::Maker& maker, const chain::Chain& chain, const std::string& where) {
  const chain::ChainLink* link = chain.find_hash(maker.head);
  if (link == nullptr) return corrupt(fmt::format("{} has no entry of the hash {}", where, maker.head));
  const int64_t step = chain::entry_step(link->entry);
  const std::string* name = chain.find_checkpoint(step);
  if (name != nullptr && *name == maker.state) return {};
  return corrupt(
      fmt::format("the run began with the published state {}, but {} has the state {} after step {}",
                  maker.state, where, name == nullptr ? "(none)" : *name, step));
}

Result<std::string> check_made(io::FileSystem& fs, const std::string& run, const chain::GenesisEntry& genesis,
                               const Manifest& initial) {
  const std::string path = io::join_path(io::join_path(run, kMakerFolder), chain::kChainFile);
  ASSIGN_OR_RETURN(const bool has_chain, fs.exists(path));
  if (!has_chain) return fmt::format("{} is not there", path);
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, path));
  RETURN_IF_ERROR(check_maker(*genesis.maker, chain, path));
  const std::string place =
      manifest_place(run, chain::entry_step(chain.find_hash(genesis.maker->head)->entry));
  ASSIGN_OR_RETURN(const bool has_manifest, fs.exists(io::join_path(place, checkpoint::kManifestName)));
  if (!has_manifest) return fmt::format("the manifest of that state is not in {}", place);
  ASSIGN_OR_RETURN(const Manifest made, read_made(fs, place, *genesis.maker));
  // Parameters that were not imported are taken as they are, but for their type.
  const auto other = [&](const std::string& text) -> Result<std::string> {
    if (!genesis.origin)
      return corrupt(fmt::format("the run did not begin with the published state {} of the run {}: {}",
                                 genesis.maker->state, genesis.maker->head, text));
    return text + ": an export may round or merge, or the model is another one";
  };
  for (const TensorSpec& spec : made.tensors)
    if (is_of_model(spec) && find_array(initial, spec.path) < 0)
      return other(fmt::format("{} has {}, initial/ has no such parameter", place, spec.path));
  for (size_t i = 0; i < initial.tensors.size(); ++i) {
    const TensorSpec& spec = initial.tensors[i];
    if (!is_of_model(spec)) continue;
    const int64_t at = array_of(made, spec.path);
    if (at < 0 && nn::is_adapter(spec.path)) continue;  // it was drawn
    if (at < 0) return other(fmt::format("{} has no {}", place, spec.path));
    const auto k = static_cast<size_t>(at);
    const TensorSpec& its = made.tensors[k];
    if (spec.axes != its.axes || spec.shape != its.shape)
      return other(
          fmt::format("{} is {} there and {} in initial/", spec.path, its.type_str(), spec.type_str()));
    if (spec.dtype != its.dtype || spec.cell != its.cell)
      return fmt::format("{} is hashed as {} there and as {} in initial/, or in other parts", spec.path,
                         its.type_str(), spec.type_str());
    if (initial.cells[i] != made.cells[k])
      return other(fmt::format("{} has other numbers there than in initial/", spec.path));
  }
  return std::string();
}

Status copy_maker_manifest(io::FileSystem& fs, const std::string& record, const chain::Maker& maker,
                           int64_t step, const std::string& run) {
  const std::string from = io::join_path(io::join_path(record, checkpoint::kCheckpointsFolder),
                                         checkpoint::step_directory(step)),
                    to = manifest_place(run, step);
  ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(from, checkpoint::kManifestName)));
  if (!there) return {};
  ASSIGN_OR_RETURN(const Manifest manifest, read_made(fs, from, maker));
  RETURN_IF_ERROR(fs.make_dirs(to));
  RETURN_IF_ERROR(io::write_file_atomically(fs, io::join_path(to, checkpoint::kManifestName),
                                            checkpoint::manifest_json(manifest)));
  return fs.sync_tree(io::join_path(run, kMakerFolder));
}

Result<std::optional<std::string>> bundle_of(io::FileSystem& fs, const std::string& from) {
  const std::string place = io::absolute_path(from);
  for (std::string above = place; above != io::parent_path(above); above = io::parent_path(above)) {
    ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(above, "bundle.json")));
    const std::string record = io::join_path(above, "record");
    if (there && (place == above || place == record || place.starts_with(record + "/")))
      return std::optional(above);
  }
  return std::optional<std::string>();
}

}  // namespace ostro::audit
