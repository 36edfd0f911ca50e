// check_bundle: checks everything about a bundle that needs no replay of steps, and comes to one verdict.
//
// It compares the files with bundle.json, its signature and time stamp, the record with itself and with
// bundle.json, the states with the chain, the weights with the published state, and the ledger with the roots
// of the genesis. It only reads, with memory for some files at a time.
#pragma once

#include <string>
#include <vector>

#include "ostro/audit/verdict.h"
#include "ostro/bundle/parts/manifest.h"
#include "ostro/context/context.h"

namespace ostro::bundle {

struct BundleOptions {
  std::string key;             // file of the public key that must have signed; empty: any
  std::string time_authority;  // file of certificates that time stamps must follow from; empty: none
  std::string run_hash;        // the published run hash; empty: none
  // Nothing is said of a model in the bundle: it has none, or it is not what the check is about.
  bool record_only = false;
};

struct BundleAudit {
  // Everything that is not as it should be; findings of one kind are folded into one, the worst first.
  std::vector<audit::Finding> findings;
  std::vector<std::string> shown, not_shown;  // sentences without their full stop
  ChainFacts chain;                           // from bundle.json; empty when that cannot be read
  std::string key;                            // fingerprint of the key that signed; empty: not signed
  std::string time;                           // the time of a valid time stamp; empty: none
  int64_t files = 0, bytes = 0;               // files that were hashed, and their bytes

  audit::Verdict verdict() const { return audit::verdict_of_sorted(findings); }
};

// Returns true when the directory is a bundle: it has bundle.json.
bool is_bundle(io::FileSystem& fs, const std::string& directory);

// The facts about a bundle that a replay of its steps needs.
struct BundleRecord {
  std::string folder;  // the run directory in the bundle
  std::string head;    // its run hash, from bundle.json
  std::vector<int64_t> checkpoints;
  bool has_moments = true;
};
// Reads bundle.json; the record is not compared with it. Errors: those of parse_manifest and of reading.
Result<BundleRecord> open_record(io::FileSystem& fs, const std::string& directory);

// Checks the bundle in `directory`. Error: kInvalidArgument for a --key or --time_ca that is no such file,
// and for a run hash that no run can have. Whatever is wrong with the bundle is a finding.
Result<BundleAudit> check_bundle(const Context& context, const std::string& directory,
                                 const BundleOptions& options);

// The verdict's line first, then the other findings, what was shown and what was not. Ends with a newline.
std::string bundle_text(const BundleAudit& audit);
// The same with another line for what is equal.
std::string audit_text(const BundleAudit& audit, const std::string& when_equal);
// One JSON object in a line.
std::string bundle_json(const BundleAudit& audit);

}  // namespace ostro::bundle
