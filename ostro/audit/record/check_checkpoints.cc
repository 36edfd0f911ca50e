#include "ostro/audit/record/check_checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <set>

#include "ostro/audit/record/witness.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/part_reader.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/io/files/path.h"
#include "ostro/train/programs/state_arrays.h"

namespace ostro::audit {
namespace {

// The folder of one of the optimizer's arrays, of all parameters: "optimizer/first_moment".
std::string array_folder(const std::string& path) {
  const size_t first = path.find('/');
  return first == std::string::npos ? path : path.substr(0, path.find('/', first + 1));
}

// Hashes every cell, of a checkpoint without moments those of the weights.
Status check_cells(io::FileSystem& fs, const checkpoint::Checkpoint& checkpoint, bool is_partial) {
  std::vector<std::string> paths;
  for (const checkpoint::TensorSpec& spec : checkpoint.manifest().tensors)
    if (!is_partial || is_weight_array(spec.path)) paths.push_back(spec.path);
  ASSIGN_OR_RETURN(const auto reader, checkpoint::PartReader::open(fs, checkpoint, paths));
  return reader.check({});
}

CheckedCheckpoint check_one(io::FileSystem& fs, const checkpoint::Entry& entry, const Witness& witness) {
  CheckedCheckpoint out{entry.step, entry.path, CheckpointVerdict::kDamaged, "", ""};
  const auto opened = checkpoint::Checkpoint::open(fs, entry.path);
  if (!opened.ok()) {
    out.verdict = verdict_of(opened.error(), CheckpointVerdict::kDamaged);
    out.detail = opened.error().message();
    return out;
  }
  out.name = opened->manifest().name;
  // Before its arrays are read: a forged manifest may name sizes that no memory has.
  if (const auto evidence = witness.check_manifest(opened->manifest(), entry.path); !evidence.ok()) {
    out.verdict = verdict_of(evidence.error(), CheckpointVerdict::kForged);
    out.detail = evidence.error().message();
    return out;
  }
  const bool is_partial = lacks_moments(fs, *opened);
  try {
    if (const Status whole = check_cells(fs, *opened, is_partial); !whole.ok()) {
      out.detail = whole.error().message();
      return out;
    }
  } catch (const std::bad_alloc&) {  // a temporary one, whose sizes the chain does not say
    out.detail = fmt::format("{}: its manifest names an array that is larger than the memory", entry.path);
    return out;
  }
  const Result<Evidence> evidence = witness.check(fs, *opened);
  if (!evidence.ok()) {
    out.verdict = verdict_of(evidence.error(), CheckpointVerdict::kForged);
    out.detail = evidence.error().message();
  } else if (is_partial) {
    out.verdict = CheckpointVerdict::kPartial;
    out.detail =
        "its parameters are those of its manifest; its moments were left out, so no step follows from it";
  } else if (*evidence == Evidence::kName) {
    out.verdict = CheckpointVerdict::kFine;
  } else {
    out.verdict = CheckpointVerdict::kTemporary;
    out.detail =
        *evidence == Evidence::kFingerprint
            ? "not in the chain; its parameters have the fingerprint of its step there, its moments were not "
              "replayed"
            : "not in the chain, which begins behind it; it was not replayed";
  }
  return out;
}

}  // namespace

bool is_weight_array(const std::string& path) {
  return path.starts_with("model/") || path.starts_with(train::optimizer_path(optim::kAverage, ""));
}

bool lacks_moments(io::FileSystem& fs, const checkpoint::Checkpoint& checkpoint) {
  std::set<std::string> folders;
  for (const checkpoint::TensorSpec& spec : checkpoint.manifest().tensors)
    if (!is_weight_array(spec.path)) folders.insert(array_folder(spec.path));
  for (const std::string& folder : folders) {
    const auto there = fs.exists(io::join_path(checkpoint.path(), folder));
    if (!there.ok() || *there) return false;
  }
  return !folders.empty();
}

CheckpointVerdict verdict_of(const Error& error, CheckpointVerdict otherwise) {
  return error.code() == ErrorCode::kUnsupported ? CheckpointVerdict::kUnknown : otherwise;
}

const char* verdict_name(CheckpointVerdict verdict) {
  switch (verdict) {
    case CheckpointVerdict::kFine: return "fine";
    case CheckpointVerdict::kTemporary: return "temporary";
    case CheckpointVerdict::kDamaged: return "damaged";
    case CheckpointVerdict::kForged: return "forged";
    case CheckpointVerdict::kMissing: return "missing";
    case CheckpointVerdict::kPartial: return "without moments";
    case CheckpointVerdict::kUnknown: return "not checked";
  }
  return "";
}

Result<std::vector<CheckedCheckpoint>> check_checkpoints(io::FileSystem& fs, const std::string& run_directory,
                                                         const chain::Chain& chain,
                                                         const models::ModelChoices& models) {
  const std::string folder = io::join_path(run_directory, checkpoint::kCheckpointsFolder);
  const std::string chain_path = io::join_path(run_directory, chain::kChainFile);
  ASSIGN_OR_RETURN(const std::vector<checkpoint::Entry> entries, checkpoint::list_checkpoints(fs, folder));
  // Read after the listing: a run that is under way writes its chain before its checkpoints.
  ASSIGN_OR_RETURN(chain::Chain now, chain::read_chain(fs, chain_path));
  const Witness witness(std::move(now), chain_path, models);
  std::vector<CheckedCheckpoint> out;
  std::set<int64_t> there;
  for (const checkpoint::Entry& entry : entries) {
    there.insert(entry.step);
    CheckedCheckpoint one = check_one(fs, entry, witness);
    if (!one.fine()) {
      // The run removes temporary ones while it is looked at.
      ASSIGN_OR_RETURN(const bool still, fs.exists(entry.path));
      if (!still && witness.chain().find_checkpoint(entry.step) == nullptr) continue;
    }
    out.push_back(std::move(one));
  }
  for (const chain::ChainLink& link : chain.links)
    if (const auto* entry = std::get_if<chain::CheckpointEntry>(&link.entry);
        entry && !there.contains(entry->step))
      out.push_back({entry->step, io::join_path(folder, checkpoint::step_directory(entry->step)),
                     CheckpointVerdict::kMissing, entry->name,
                     fmt::format("{} has its state, {}", chain_path, entry->name)});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return out;
}

void compare_with_replay(const std::map<int64_t, std::string>& names, int64_t different_step,
                         std::vector<CheckedCheckpoint>& checked) {
  for (CheckedCheckpoint& one : checked) {
    if (different_step >= 0 && one.step >= different_step && one.verdict == CheckpointVerdict::kForged) {
      one.verdict = CheckpointVerdict::kUnknown;
      one.detail = fmt::format(
          "{}: the chain differs from the replay from step {} on, so it does not say what "
          "this checkpoint should be",
          one.path, different_step);
      continue;
    }
    const auto replayed = names.find(one.step);
    if (one.verdict != CheckpointVerdict::kTemporary || replayed == names.end()) continue;
    if (one.name == replayed->second) {
      one.detail = "not in the chain; replayed: its state is the same";
    } else {
      one.verdict = CheckpointVerdict::kForged;
      one.detail = fmt::format("{}: forged, or of another run: its state is {}, {} replayed", one.path,
                               one.name, replayed->second);
    }
  }
}

}  // namespace ostro::audit
