// audit_leaf: replays one leaf of a step, and proves it against the Merkle root of the step's leaves in the
// chain. It is for models that are too large to replay a whole step.
//
// It needs the parameters before the step, the leaf's rows (from the token store, or from a proof file that
// `ostro data prove` makes from that store), and the other leaves' hashes (leaves.jsonl, or
// the proof file). Memory: the parameters, and what the leaf program needs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/sample/cost.h"
#include "ostro/audit/verdict.h"
#include "ostro/audit/verify.h"
#include "ostro/chain/leaves.h"

namespace ostro::leaf_audit {

// The memory and work that an audit needs.
struct LeafPrice {
  int64_t step = 0, leaf = 0, leaves = 0;  // the leaf, and the number of leaves of the step
  int64_t replayed = 0;                    // whole steps that are replayed first to get the parameters
  int64_t parameter_bytes = 0;
  // Gradients and temporaries of the leaf program, and the process itself. When steps are replayed first, the
  // larger of this and what those need, with the moments.
  int64_t working_bytes = 0;
  double flops = 0;            // of the leaf
  double flops_before = 0;     // of the leaves of the steps that are replayed first
  double trained_seconds = 0;  // the time of a leaf when the run was trained (run.json); 0: not known
  int64_t leaves_before = 0;   // the number of leaves of the steps that are replayed first
};

struct LeafRequest {
  int64_t step = 0, leaf = 0;
  std::string proof;                                // the proof file; empty: the token store is used
  std::function<void(const LeafPrice&)> on_priced;  // called before the work
  bool only_price = false;                          // do not replay
  std::string run_hash = {};                        // the published run hash; empty: none
  std::string hash_from = {};                       // as in audit::AuditOptions
};

struct LeafAudit {
  LeafPrice price;
  bool proven_rows = false;                   // the rows came from a proof file
  std::optional<chain::LeafRecord> replayed;  // nothing when the leaf was not replayed
  audit::Cost spent;
  std::vector<audit::Finding> findings;  // the worst first
  audit::Verdict verdict() const { return audit::verdict_of_sorted(findings); }
};

// Audits the leaf. `engine` runs its program, on this thread. Error: kInvalidArgument for a step or leaf that
// the run does not have, and for a run hash that no run can have. Whatever else is wrong is a finding.
Result<LeafAudit> audit_leaf(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                             const audit::VerifyOptions& options, const LeafRequest& request,
                             const models::ModelChoices& models);

// Texts for people, which end with a newline: the price; the verdict, what was shown and what was not.
std::string leaf_price_text(const LeafPrice& price);
std::string leaf_text(const LeafAudit& audit);
// One JSON object in a line.
std::string leaf_json(const LeafAudit& audit);

}  // namespace ostro::leaf_audit
