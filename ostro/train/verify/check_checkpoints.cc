#include "ostro/train/verify/check_checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/checkpoint/restore.h"
#include "ostro/io/files/path.h"
#include "ostro/train/run/witness.h"

namespace ostro::train {
namespace {

CheckedCheckpoint check_one(io::FileSystem& fs, const checkpoint::Entry& entry, const Witness& witness) {
  CheckedCheckpoint out{entry.step, entry.path, Verdict::kDamaged, "", ""};
  const auto opened = checkpoint::Checkpoint::open(fs, entry.path);
  if (!opened.ok()) {
    out.detail = opened.error().message();
    return out;
  }
  out.name = opened->manifest().name;
  if (const Status whole = opened->verify(); !whole.ok()) {
    out.detail = whole.error().message();
    return out;
  }
  const Result<Evidence> evidence = witness.check(*opened);
  if (!evidence.ok()) {
    out.verdict = Verdict::kForged;
    out.detail = evidence.error().message();
  } else if (*evidence == Evidence::kName) {
    out.verdict = Verdict::kFine;
  } else {
    out.verdict = Verdict::kTemporary;
    out.detail =
        *evidence == Evidence::kFingerprint
            ? "not in the chain; its parameters have the fingerprint of its step there, its moments were not "
              "replayed"
            : "not in the chain, which begins behind it; it was not replayed";
  }
  return out;
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFine:
      return "fine";
    case Verdict::kTemporary:
      return "temporary";
    case Verdict::kDamaged:
      return "damaged";
    case Verdict::kForged:
      return "forged";
    case Verdict::kMissing:
      return "missing";
  }
  return "";
}

Result<std::vector<CheckedCheckpoint>> check_checkpoints(io::FileSystem& fs, const std::string& run_directory,
                                                         const Chain& chain, const ModelChoices& models) {
  const std::string folder = io::join_path(run_directory, "checkpoints");
  const std::string chain_path = io::join_path(run_directory, kChainFile);
  const Witness witness(chain, chain_path, models);
  ASSIGN_OR_RETURN(const std::vector<checkpoint::Entry> entries, checkpoint::list_checkpoints(fs, folder));
  std::vector<CheckedCheckpoint> out;
  std::set<int64_t> there;
  for (const checkpoint::Entry& entry : entries) {
    there.insert(entry.step);
    out.push_back(check_one(fs, entry, witness));
  }
  for (const ChainLink& link : chain.links)
    if (const auto* entry = std::get_if<CheckpointEntry>(&link.entry); entry && !there.contains(entry->step))
      out.push_back({entry->step, io::join_path(folder, checkpoint::step_directory(entry->step)),
                     Verdict::kMissing, entry->name,
                     fmt::format("{} has its state, {}", chain_path, entry->name)});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return out;
}

void compare_with_replay(const std::map<int64_t, std::string>& names,
                         std::vector<CheckedCheckpoint>& checked) {
  for (CheckedCheckpoint& one : checked) {
    const auto replayed = names.find(one.step);
    if (one.verdict != Verdict::kTemporary || replayed == names.end()) continue;
    if (one.name == replayed->second) {
      one.detail = "not in the chain; replayed: its state is the same";
    } else {
      one.verdict = Verdict::kForged;
      one.detail = fmt::format("{}: forged, or of another run: its state is {}, {} replayed", one.path,
                               one.name, replayed->second);
    }
  }
}

}  // namespace ostro::train
