// audit_run: everything that can be said of a run's record, and the one verdict that it comes to.
//
// It compares the run hash that was given, the chain's length, every checkpoint, the tokenizer and the
// programs with the chain, and replays steps. It only reads, so a run may go on meanwhile.
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
  SampleRequest sample;                // in place of all steps from one to another
  std::string run_hash;                // that was published; empty: none
  std::string hash_from = "as given";  // how findings name where run_hash is from
  std::string parent;  // of a fork: the run directory of the run that it goes on with; empty: not at hand
  // Of a record that took only some checkpoints along (`ostro publish`): their steps. Others that the chain
  // names are not missed.
  std::optional<std::vector<int64_t>> checkpoints = {};
  bool parameters_only = false;  // their moments are not missed, either
};

struct Audit {
  std::string head;        // the run hash; empty: the chain cannot be read
  std::string given;       // as AuditOptions::run_hash
  std::string given_from;  // as AuditOptions::hash_from
  int64_t steps = 0;       // number of the chain's last step
  int64_t before = 0;      // steps done before its first: of a fork those of its parent
  // Steps that the run is to have, as its last config says. Nothing: no such number is in the chain.
  std::optional<int64_t> length;
  std::string beginning;  // with what the run began (check_beginning); empty: with weights that were drawn
  std::vector<std::string> not_shown;  // of that
  std::vector<CheckedCheckpoint> checkpoints;
  std::optional<VerifyReport> replay;  // nothing with no_replay, or when it could not be done
  std::optional<Sample> sample;        // of a sampled audit, in place of `replay`
  // All that is not as it should be, each kind once. The worst come first, of equally bad ones what a replay
  // found.
  std::vector<Finding> findings;

  Verdict verdict() const { return verdict_of_sorted(findings); }
  bool hash_fits() const { return given.empty() || given == head; }
};

// trainer.num_train_steps of the last config that the chain has. Nothing: no such number is there.
std::optional<int64_t> length_of(const chain::Chain& chain);

// What a chain that has not the run hash `given` shows; nothing: it has it, or `given` is empty. `from` says
// where that is from, such as "as given".
std::optional<Finding> hash_finding(const chain::Chain& chain, const std::string& given,
                                    const std::string& from);

// `engine` is asked for only when steps are replayed. Errors: kInvalidArgument for a run hash or steps that
// no run can have; whatever is wrong with the record is a finding.
Result<Audit> audit_run(io::FileSystem& fs,
                        const std::function<Result<std::unique_ptr<runtime::Engine>>()>& engine,
                        const std::string& run_directory, const AuditOptions& options,
                        const models::ModelChoices& models);

// The verdict's line first, then the other findings and what was compared. Ends with a newline.
std::string audit_text(const Audit& audit);
// One JSON object in a line.
std::string audit_json(const Audit& audit);

}  // namespace ostro::audit
