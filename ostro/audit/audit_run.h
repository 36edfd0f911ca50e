// audit_run: checks everything about a run that its record allows to check, and comes to one verdict.
//
// It compares the run hash that was given, the chain's length, every checkpoint, the tokenizer and the
// programs with the chain, and replays steps. It only reads, so a run may go on meanwhile. One call uses one
// engine, and so one thread; audits of other engines may run beside it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/record/check_checkpoints.h"
#include "ostro/audit/sampled.h"
#include "ostro/audit/verdict.h"
#include "ostro/audit/verify.h"

namespace ostro::audit {

struct AuditOptions {
  VerifyOptions replay;
  bool no_replay = false;              // needs no token store
  SampleRequest sample;                // with a count, drawn steps are replayed in place of a range
  std::string run_hash;                // the published run hash; empty: none
  std::string hash_from = "as given";  // the words of findings for the source of run_hash
  std::string parent;                  // for a fork: the run directory of its parent; empty: not at hand
  // For a record that has only some of the run's checkpoints (`ostro publish`): their steps. That others are
  // missing is then no finding.
  std::optional<std::vector<int64_t>> checkpoints = {};
  bool parameters_only = false;  // that moments are missing is no finding, either
};

struct Audit {
  std::string head;        // the run hash; empty: the chain cannot be read
  std::string given;       // as AuditOptions::run_hash
  std::string given_from;  // as AuditOptions::hash_from
  int64_t steps = 0;       // number of the chain's last step
  int64_t before = 0;      // steps done before the chain's first one: for a fork, those of its parent
  // The number of steps that the run is to have (length_of). Nothing: the chain has no such number.
  std::optional<int64_t> length;
  std::string beginning;               // Beginning::text
  std::vector<std::string> not_shown;  // Beginning::not_shown
  std::vector<CheckedCheckpoint> checkpoints;
  std::optional<VerifyReport> replay;  // nothing with no_replay, or when it could not be done
  std::optional<Sample> sample;        // a sampled audit has this in place of `replay`
  // Everything that is not as it should be; findings of one kind are folded into one. The worst come first;
  // of equally bad ones, those of the replay.
  std::vector<Finding> findings;

  Verdict verdict() const { return verdict_of_sorted(findings); }
  bool hash_fits() const { return given.empty() || given == head; }
};

// Returns trainer.num_train_steps of the last config in the chain; nothing when the chain has no such number.
std::optional<int64_t> length_of(const chain::Chain& chain);

// Returns the finding about a chain whose run hash is not `given`; nothing when it is, or `given` is empty.
// `from` are words for the source of `given`, such as "as given".
std::optional<Finding> hash_finding(const chain::Chain& chain, const std::string& given,
                                    const std::string& from);

// Audits the run. `engine` is called only when steps are replayed. Errors: kInvalidArgument for a run hash or
// steps that no run can have. Whatever is wrong with the record is a finding, not an error.
Result<Audit> audit_run(io::FileSystem& fs,
                        const std::function<Result<std::unique_ptr<runtime::Engine>>()>& engine,
                        const std::string& run_directory, const AuditOptions& options,
                        const models::ModelChoices& models);

// The verdict's line first, then the other findings and what was compared. Ends with a newline.
std::string audit_text(const Audit& audit);
// One JSON object in a line.
std::string audit_json(const Audit& audit);

}  // namespace ostro::audit
