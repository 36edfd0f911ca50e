// audit_leaf: replays one leaf of a step, and proves it against the Merkle root that the chain has of the
// step's leaves. For models of which a whole step is out of reach.
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

// What the work takes.
struct LeafPrice {
  int64_t step = 0, leaf = 0, leaves = 0;  // the leaf, of so many of the step
  int64_t replayed = 0;                    // whole steps that are replayed to get the parameters
  int64_t parameter_bytes = 0;
  // Gradients and temporaries of the leaf program, and the process itself; where steps are replayed before it
  // also the moments and what their programs take, if that is more.
  int64_t working_bytes = 0;
  double flops = 0;            // of the leaf
  double flops_before = 0;     // of the leaves of the steps before it
  double trained_seconds = 0;  // of a leaf when the run was trained (run.json); 0: not known
  int64_t leaves_before = 0;   // of the steps before it
};

struct LeafRequest {
  int64_t step = 0, leaf = 0;
  std::string proof;                                // file; empty: the token store is used
  std::function<void(const LeafPrice&)> on_priced;  // before the work
  bool only_price = false;
  std::string run_hash = {};   // that was published; empty: none
  std::string hash_from = {};  // as audit::AuditOptions
};

struct LeafAudit {
  LeafPrice price;
  bool proven_rows = false;                   // from a proof file
  std::optional<chain::LeafRecord> replayed;  // nothing: it did not come to that
  audit::Cost spent;
  std::vector<audit::Finding> findings;  // the worst first
  audit::Verdict verdict() const { return audit::verdict_of_sorted(findings); }
};

// Errors: kInvalidArgument for a step or leaf that the run does not have, and a run hash that none has.
// Whatever else is wrong is a finding.
Result<LeafAudit> audit_leaf(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                             const audit::VerifyOptions& options, const LeafRequest& request,
                             const models::ModelChoices& models);

// For people: the price; the verdict's line, what was and what was not shown. Both end with a newline.
std::string leaf_price_text(const LeafPrice& price);
std::string leaf_text(const LeafAudit& audit);
// One JSON object in a line.
std::string leaf_json(const LeafAudit& audit);

}  // namespace ostro::leaf_audit
