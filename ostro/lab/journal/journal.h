// Journal: what was done in a lab, as a hash chain: journal.jsonl. Its lines are made as those of a run's
// chain (docs/reference/formats/chain.md): canonical JSON, each with the hash "h" over the line before and
// its own text. So no line can be changed, put in or taken out of the middle unseen. One thread uses it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"

namespace ostro::lab {

inline constexpr const char* kJournalFile = "journal.jsonl";

// That a step was done: what its fingerprint is made of, and what came out.
struct DoneEntry {
  std::string step;         // its name
  std::string recipe;       // canonical JSON: kind, version, parameters, contents of the inputs
  std::string fingerprint;  // SHA-256 of the recipe
  std::string content;      // hash of what the step gives to others
  std::string manifest;     // SHA-256 of the list of its files; empty for a source, which has none of its own
};

class Journal {
 public:
  // Reads the journal in a lab's folder; none is an empty one. An unfinished last line is cut off when the
  // next one is written. Errors: kCorrupt, with file and line.
  static Result<Journal> open(io::FileSystem& fs, const std::string& lab_directory);

  // Appends a line and syncs it. The first line of a journal names its format.
  Status add_plan(const std::string& plan_hash);
  Status add_done(const DoneEntry& entry);
  // That an audit of this share begins. It changes the head, which says what is drawn.
  Status add_draw(double share);
  // That a step was done again, and gave the same files.
  Status add_audit(const std::string& step, const std::string& fingerprint);
  // That a program was run where no sandbox works, and why that is.
  Status add_unsandboxed(const std::string& step, const std::string& fingerprint, const std::string& reason);
  // That one fingerprint gave two contents, or two lists of files.
  Status add_conflict(const std::string& step, const std::string& fingerprint, const std::string& first,
                      const std::string& second);

  // The last entry of this fingerprint, or of this step; null when there is none.
  const DoneEntry* find(const std::string& fingerprint) const;
  const DoneEntry* last_of(const std::string& step) const;
  bool was_unsandboxed(const std::string& fingerprint) const;
  bool has_conflict(const std::string& fingerprint) const;
  const std::string& plan_hash() const { return plan_; }
  // The hash of the last line; empty for an empty journal.
  const std::string& head() const { return head_; }

 private:
  Journal(io::FileSystem& fs, std::string path) : fs_(&fs), path_(std::move(path)) {}
  Status read();
  Status take(const nlohmann::json& entry);
  Status append(const nlohmann::json& entry);

  io::FileSystem* fs_;
  std::string path_, plan_;
  std::string head_;        // the hash of the last line; empty for an empty journal
  int64_t bytes_ = 0;       // of whole lines
  int64_t torn_bytes_ = 0;  // behind them
  std::vector<DoneEntry> done_;
  std::vector<std::string> conflicts_, unsandboxed_;  // fingerprints
};

}  // namespace ostro::lab
