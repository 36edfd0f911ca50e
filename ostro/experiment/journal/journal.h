// Journal: what was done in a lab, as a hash chain (line_chain.h): journal.jsonl. One thread uses it.
#pragma once

#include <string>
#include <vector>

#include "ostro/experiment/journal/line_chain.h"

namespace ostro::lab {

inline constexpr const char* kJournalFile = "journal.jsonl";

// That a step was done: what its fingerprint is made of, and what came out.
struct DoneEntry {
  std::string step;         // its name
  std::string recipe;       // canonical JSON: kind, version, parameters, contents of the inputs
  std::string fingerprint;  // SHA-256 of the recipe
  std::string content;      // hash of what the step gives to others
  std::string manifest;     // SHA-256 of the list of its files; empty for a source, which has none of its own
  // Of a step that a hypothesis uses: the registry's line that was in force; else empty.
  std::string registration = {};
};

// That a step, or a part of it, was done again with equal bits.
struct Replay {
  std::string fingerprint;
  std::string by;        // who did it, as they say; empty: no name was given
  std::string verified;  // what was done again, for people
  bool whole = false;
  std::string statement = {};  // of others: the text that they gave (attest/replay_statement.h)
};

class Journal {
 public:
  // Reads the journal in a lab's folder; none is an empty one. An unfinished last line is cut off when the
  // next one is written. Errors: kCorrupt, with file and line.
  static Result<Journal> open(io::FileSystem& fs, const std::string& lab_directory);

  // Writes the first line, which names the journal's format, if there is none.
  Status begin();
  // Appends a line and syncs it, behind the first line.
  Status add_plan(const std::string& plan_hash);
  Status add_done(const DoneEntry& entry);
  // That an audit of this share begins. It changes the head, which says what is drawn.
  Status add_draw(double share);
  // That a step was done again, and gave the same files; by whom, if they say.
  Status add_audit(const std::string& step, const std::string& fingerprint, const std::string& by);
  // That others did a run again. Each statement is taken once.
  Status add_replay(const std::string& step, const Replay& replay);
  // That a program was run where no sandbox works, and why that is.
  Status add_unsandboxed(const std::string& step, const std::string& fingerprint, const std::string& reason);
  // That the output was made outside of the lab, and which part of it was done again here.
  Status add_adopted(const std::string& step, const std::string& fingerprint, const std::string& verified);
  // That one fingerprint gave two contents, or two lists of files.
  Status add_conflict(const std::string& step, const std::string& fingerprint, const std::string& first,
                      const std::string& second);

  // That the registry has a line with this hash. So its place among what was done is fixed by hashes.
  Status add_registry(const std::string& line);

  // The last entry of this fingerprint, or of this step; null when there is none.
  const DoneEntry* find(const std::string& fingerprint) const;
  const DoneEntry* last_of(const std::string& step) const;
  bool was_unsandboxed(const std::string& fingerprint) const;
  bool was_adopted(const std::string& fingerprint) const;
  bool has_conflict(const std::string& fingerprint) const;
  const std::string& plan_hash() const { return plan_; }
  // The hash of the last line; empty for an empty journal.
  std::string head() const { return lines_.head(); }
  const std::vector<HashedLine>& lines() const { return lines_.lines(); }
  const std::vector<DoneEntry>& done() const { return done_; }
  // Audits, statements of others, and what was verified of adopted outputs.
  const std::vector<Replay>& replays() const { return replays_; }
  // The hashes of the registry's lines, as they were added.
  const std::vector<std::string>& registry() const { return registry_; }
  // Whether a step with this fingerprint was done before the registry's line was added.
  bool was_done_before(const std::string& fingerprint, const std::string& line) const;

 private:
  explicit Journal(LineChain lines) : lines_(std::move(lines)) {}
  Status take(const nlohmann::json& entry);
  Status append(const nlohmann::json& entry);

  LineChain lines_;
  std::string plan_;
  std::vector<DoneEntry> done_;
  std::vector<std::string> conflicts_, unsandboxed_, adopted_;  // fingerprints
  std::vector<Replay> replays_;
  std::vector<std::string> registry_;
  std::vector<size_t> done_before_;  // how many entries of done_ come before each of registry_
};

}  // namespace ostro::lab
