#include "ostro/lab/journal/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/failpoint.h"
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
                                        kConflict = {"fingerprint", "first", "second", "step"};
  if (kind == "done") return &kDone;
  if (kind == "plan") return &kPlan;
  if (kind == "lab") return &kLab;
  if (kind == "draw") return &kDraw;
  if (kind == "audit") return &kAudit;
  if (kind == "unsandboxed") return &kOpen;
  return kind == "conflict" ? &kConflict : nullptr;
}

bool has_form(const nlohmann::json& entry) {
  if (!entry.is_object() || !entry.contains("kind") || !entry["kind"].is_string()) return false;
  const std::string kind = entry["kind"];
  const auto* fields = fields_of(kind);
  if (fields == nullptr || entry.size() != fields->size() + 1) return false;
  for (const std::string& field : *fields)
    if (!entry.contains(field) ||
        (kind == "lab" ? !entry[field].is_number_integer() : !entry[field].is_string()))
      return false;
  return true;
}

std::string hash_of(const std::string& previous, const nlohmann::json& entry) {
  return sha256_hex(previous + entry.dump());
}

}  // namespace

Result<Journal> Journal::open(io::FileSystem& fs, const std::string& lab_directory) {
  Journal journal(fs, io::join_path(lab_directory, kJournalFile));
  ASSIGN_OR_RETURN(const bool exists, fs.exists(journal.path_));
  if (exists) RETURN_IF_ERROR(journal.read());
  return journal;
}

Status Journal::read() {
  ASSIGN_OR_RETURN(const std::string text, fs_->read_file(path_));
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      torn_bytes_ = static_cast<int64_t>(text.size() - begin);
      break;
    }
    const std::string line = text.substr(begin, end - begin);
    const std::string where = fmt::format("{}: line {}", path_, ++number);
    auto entry = nlohmann::json::parse(line, nullptr, false);
    // dump() of a text that is no UTF-8 would throw; such a line is in no canonical form.
    if (entry.is_discarded() || !entry.is_object() ||
        entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) != line ||
        !entry.contains("h") || !entry["h"].is_string())
      return corrupt(
          fmt::format("{}: is no line of a journal; put back a copy, or move the lab's folder away "
                      "and run the plan again",
                      where));
    const std::string hash = entry["h"];
    entry.erase("h");
    if (hash_of(head_, entry) != hash)
      return corrupt(
          fmt::format("{}: its hash \"h\" is wrong: this line was altered, or one is missing before it. "
                      "Put back a copy, or move the lab's folder away and run the plan again",
                      where));
    if (!has_form(entry))
      return corrupt(fmt::format("{}: is a kind of line that this version does not know", where));
    if ((number == 1) != (entry["kind"] == "lab"))
      return corrupt(fmt::format("{}: the first line, and no other, names the journal's format", where));
    if (entry["kind"] == "lab" && entry["format"] != kFormat)
      return unsupported(fmt::format("{}: has the format {}; this version reads {}", where,
                                     entry["format"].dump(), kFormat));
    head_ = hash;
    if (const Status taken = take(entry); !taken.ok()) return taken.error().with_context(where);
    begin = end + 1;
    bytes_ = static_cast<int64_t>(begin);
  }
  return {};
}

Status Journal::take(const nlohmann::json& entry) {
  const std::string kind = entry["kind"];
  if (kind == "plan") plan_ = entry["sha256"];
  if (kind == "unsandboxed") unsandboxed_.push_back(entry["fingerprint"]);
  if (kind == "conflict") conflicts_.push_back(entry["fingerprint"]);
  if (kind != "done") return {};
  const DoneEntry done{entry["step"], entry["recipe"], entry["fingerprint"], entry["content"],
                       entry["manifest"]};
  if (sha256_hex(done.recipe) != done.fingerprint)
    return corrupt(fmt::format("the fingerprint of step {} is not that of its recipe", done.step));
  done_.push_back(done);
  return {};
}

Status Journal::append(const nlohmann::json& entry) {
  if (head_.empty() && entry["kind"] != "lab")
    RETURN_IF_ERROR(append({{"kind", "lab"}, {"format", kFormat}}));
  if (torn_bytes_ > 0) {
    RETURN_IF_ERROR(fs_->truncate(path_, bytes_));
    torn_bytes_ = 0;
  }
  const std::string hash = hash_of(head_, entry);
  nlohmann::json with_hash = entry;
  with_hash["h"] = hash;
  const std::string line = with_hash.dump() + "\n";
  ASSIGN_OR_RETURN(const auto file, fs_->open_append(path_));
  Status written = file->append(std::string_view(line).substr(0, line.size() / 2));
  if (written.ok()) {
    failpoint("journal_append");
    written = file->append(std::string_view(line).substr(line.size() / 2));
  }
  if (written.ok()) written = file->sync();
  if (written.ok() && head_.empty()) written = fs_->sync_dir(io::parent_path(path_));  // the file is new
  if (!written.ok()) {
    static_cast<void>(fs_->truncate(path_, bytes_));  // readers take what is left for torn
    return written;
  }
  head_ = hash;
  bytes_ += static_cast<int64_t>(line.size());
  return take(entry);
}

Status Journal::add_plan(const std::string& plan_hash) {
  return append({{"kind", "plan"}, {"sha256", plan_hash}});
}

Status Journal::add_done(const DoneEntry& e) {
  return append({{"kind", "done"},
                 {"step", e.step},
                 {"recipe", e.recipe},
                 {"fingerprint", e.fingerprint},
                 {"content", e.content},
                 {"manifest", e.manifest}});
}

Status Journal::add_draw(double share) {
  return append({{"kind", "draw"}, {"share", config::format_double(share)}});
}

Status Journal::add_audit(const std::string& step, const std::string& fingerprint) {
  return append({{"kind", "audit"}, {"step", step}, {"fingerprint", fingerprint}});
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

bool Journal::was_unsandboxed(const std::string& fingerprint) const {
  return std::find(unsandboxed_.begin(), unsandboxed_.end(), fingerprint) != unsandboxed_.end();
}

bool Journal::has_conflict(const std::string& fingerprint) const {
  return std::find(conflicts_.begin(), conflicts_.end(), fingerprint) != conflicts_.end();
}

}  // namespace ostro::lab
