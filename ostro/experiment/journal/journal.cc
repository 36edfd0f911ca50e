#include "ostro/experiment/journal/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/config/node.h"
#include "ostro/config/utf8.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

constexpr int64_t kFormat = 1;

// Fields besides "kind" and "h"; all are strings, but for the format.
const std::vector<std::string>* fields_of(const std::string& kind) {
  static const std::vector<std::string> kDone = {"content", "fingerprint", "manifest", "recipe", "step"},
                                        kPlan = {"sha256"}, kLab = {"format"}, kDraw = {"share"},
                                        kAudit = {"fingerprint", "step"},
                                        kOpen = {"fingerprint", "reason", "step"},
                                        kReplay = {"by",   "fingerprint", "statement",
                                                   "step", "verified",    "whole"},
                                        kAdopted = {"fingerprint", "step", "verified"},
                                        kConflict = {"fingerprint", "first", "second", "step"};
  if (kind == "done") return &kDone;
  if (kind == "plan" || kind == "registry") return &kPlan;
  if (kind == "lab") return &kLab;
  if (kind == "draw") return &kDraw;
  if (kind == "audit") return &kAudit;
  if (kind == "unsandboxed") return &kOpen;
  if (kind == "replay") return &kReplay;
  if (kind == "adopted") return &kAdopted;
  return kind == "conflict" ? &kConflict : nullptr;
}

// A field that some lines of a kind have.
std::string optional_field(const std::string& kind) {
  return kind == "done" ? "registration" : kind == "audit" ? "by" : "";
}

bool has_form(const nlohmann::json& entry) {
  if (!entry.is_object() || !entry.contains("kind") || !entry["kind"].is_string()) return false;
  const std::string kind = entry["kind"];
  const auto* fields = fields_of(kind);
  const std::string optional = optional_field(kind);
  const bool has_more = !optional.empty() && entry.contains(optional);
  if (fields == nullptr || entry.size() != fields->size() + (has_more ? 2 : 1)) return false;
  if (has_more && !entry[optional].is_string()) return false;
  for (const std::string& field : *fields)
    if (!entry.contains(field) ||
        (kind == "lab" ? !entry[field].is_number_integer() : !entry[field].is_string()))
      return false;
  return true;
}

}  // namespace

Result<Journal> Journal::open(io::FileSystem& fs, const std::string& lab_directory) {
  ASSIGN_OR_RETURN(LineChain lines,
                   LineChain::open(fs, io::join_path(lab_directory, kJournalFile), "journal"));
  Journal journal(std::move(lines));
  int64_t number = 0;
  for (const HashedLine& line : journal.lines()) {
    const auto entry = nlohmann::json::parse(line.entry);
    const std::string where = fmt::format("{}: line {}", journal.lines_.path(), ++number);
    if (!has_form(entry))
      return corrupt(fmt::format("{}: is a kind of line that this version does not know", where));
    if ((number == 1) != (entry["kind"] == "lab"))
      return corrupt(fmt::format("{}: the first line, and no other, names the journal's format", where));
    if (entry["kind"] == "lab" && entry["format"] != kFormat)
      return unsupported(fmt::format("{}: has the format {}; this version reads {}", where,
                                     entry["format"].dump(), kFormat));
    if (const Status taken = journal.take(entry); !taken.ok()) return taken.error().with_context(where);
  }
  return journal;
}

Status Journal::take(const nlohmann::json& entry) {
  const std::string kind = entry["kind"];
  if (kind == "plan") plan_ = entry["sha256"];
  if (kind == "unsandboxed") unsandboxed_.push_back(entry["fingerprint"]);
  if (kind == "adopted") {
    adopted_.push_back(entry["fingerprint"]);
    replays_.push_back({entry["fingerprint"], "", entry["verified"], false});
  }
  if (kind == "audit")
    replays_.push_back({entry["fingerprint"], entry.value("by", ""), "done again, whole", true});
  if (kind == "replay")
    replays_.push_back(
        {entry["fingerprint"], entry["by"], entry["verified"], entry["whole"] == "yes", entry["statement"]});
  if (kind == "conflict") conflicts_.push_back(entry["fingerprint"]);
  if (kind == "registry") {
    registry_.push_back(entry["sha256"]);
    done_before_.push_back(done_.size());
  }
  if (kind != "done") return {};
  const DoneEntry done{entry["step"],    entry["recipe"],   entry["fingerprint"],
                       entry["content"], entry["manifest"], entry.value("registration", "")};
  if (sha256_hex(done.recipe) != done.fingerprint)
    return corrupt(fmt::format("the fingerprint of step {} is not that of its recipe", done.step));
  done_.push_back(done);
  return {};
}

Status Journal::begin() {
  return lines().empty() ? lines_.append({{"kind", "lab"}, {"format", kFormat}}) : Status();
}

Status Journal::append(const nlohmann::json& entry) {
  RETURN_IF_ERROR(begin());
  RETURN_IF_ERROR(lines_.append(entry));
  return take(entry);
}

Status Journal::add_plan(const std::string& plan_hash) {
  return append({{"kind", "plan"}, {"sha256", plan_hash}});
}

Status Journal::add_done(const DoneEntry& e) {
  nlohmann::json entry = {{"kind", "done"},       {"step", e.step},
                          {"recipe", e.recipe},   {"fingerprint", e.fingerprint},
                          {"content", e.content}, {"manifest", e.manifest}};
  if (!e.registration.empty()) entry["registration"] = e.registration;
  return append(entry);
}

Status Journal::add_registry(const std::string& line) {
  return append({{"kind", "registry"}, {"sha256", line}});
}

Status Journal::add_draw(double share) {
  return append({{"kind", "draw"}, {"share", config::format_double(share)}});
}

Status Journal::add_audit(const std::string& step, const std::string& fingerprint, const std::string& by) {
  nlohmann::json entry = {{"kind", "audit"}, {"step", step}, {"fingerprint", fingerprint}};
  if (!by.empty()) entry["by"] = config::as_utf8(by);
  return append(entry);
}

Status Journal::add_replay(const std::string& step, const Replay& replay) {
  return append({{"kind", "replay"},
                 {"step", step},
                 {"fingerprint", replay.fingerprint},
                 {"by", config::as_utf8(replay.by)},
                 {"verified", config::as_utf8(replay.verified)},
                 {"whole", replay.whole ? "yes" : "no"},
                 {"statement", config::as_utf8(replay.statement)}});
}

Status Journal::add_adopted(const std::string& step, const std::string& fingerprint,
                            const std::string& verified) {
  return append({{"kind", "adopted"},
                 {"step", step},
                 {"fingerprint", fingerprint},
                 {"verified", config::as_utf8(verified)}});
}

Status Journal::add_unsandboxed(const std::string& step, const std::string& fingerprint,
                                const std::string& reason) {
  return append({{"kind", "unsandboxed"},
                 {"step", step},
                 {"fingerprint", fingerprint},
                 {"reason", config::as_utf8(reason)}});
}

Status Journal::add_conflict(const std::string& step, const std::string& fingerprint,
                             const std::string& first, const std::string& second) {
  return append({{"kind", "conflict"},
                 {"step", step},
                 {"fingerprint", fingerprint},
                 {"first", first},
                 {"second", second}});
}

const DoneEntry* Journal::find(const std::string& fingerprint) const {
  for (auto it = done_.rbegin(); it != done_.rend(); ++it)
    if (it->fingerprint == fingerprint) return &*it;
  return nullptr;
}

const DoneEntry* Journal::last_of(const std::string& step) const {
  for (auto it = done_.rbegin(); it != done_.rend(); ++it)
    if (it->step == step) return &*it;
  return nullptr;
}

bool Journal::was_done_before(const std::string& fingerprint, const std::string& line) const {
  const auto found = std::find(registry_.begin(), registry_.end(), line);
  const size_t end = found == registry_.end() ? done_.size() : done_before_[found - registry_.begin()];
  return std::any_of(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(end),
                     [&](const DoneEntry& done) { return done.fingerprint == fingerprint; });
}

bool Journal::was_unsandboxed(const std::string& fingerprint) const {
  return std::find(unsandboxed_.begin(), unsandboxed_.end(), fingerprint) != unsandboxed_.end();
}

bool Journal::was_adopted(const std::string& fingerprint) const {
  return std::find(adopted_.begin(), adopted_.end(), fingerprint) != adopted_.end();
}

bool Journal::has_conflict(const std::string& fingerprint) const {
  return std::find(conflicts_.begin(), conflicts_.end(), fingerprint) != conflicts_.end();
}

}  // namespace ostro::lab
