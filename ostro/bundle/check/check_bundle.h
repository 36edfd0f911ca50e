// check_bundle: everything that can be said of a bundle without replaying a step, and the one verdict.
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
  std::string run_hash;        // that was published; empty: none
};

struct BundleAudit {
  // All that is not as it should be, each kind once, the worst first.
  std::vector<audit::Finding> findings;
  std::vector<std::string> shown, not_shown;  // sentences without their full stop
  ChainFacts chain;                           // as bundle.json has them; empty when it cannot be read
  std::string key;                            // fingerprint of the key that signed; empty: not signed
  std::string time;                           // of a time stamp that holds; empty: none
  int64_t files = 0, bytes = 0;               // that were hashed

  audit::Verdict verdict() const { return audit::verdict_of_sorted(findings); }
};

// Whether the directory is a bundle: it has bundle.json.
bool is_bundle(io::FileSystem& fs, const std::string& directory);

// What a replay of a bundle's steps needs to know of it.
struct BundleRecord {
  std::string folder;  // a run directory
  std::string head;    // its run hash, as bundle.json has it
  std::vector<int64_t> checkpoints;
  bool has_moments = true;
};
// Reads bundle.json; the record is not compared with it.
Result<BundleRecord> open_record(io::FileSystem& fs, const std::string& directory);

// Errors: kInvalidArgument for a --key or --time_ca that is no such file, and for a run hash that is none.
// What is wrong with the bundle is a finding.
Result<BundleAudit> check_bundle(const Context& context, const std::string& directory,
                                 const BundleOptions& options);

// The verdict's line first, then the other findings, what was shown and what was not. Ends with a newline.
std::string bundle_text(const BundleAudit& audit);
// One JSON object in a line.
std::string bundle_json(const BundleAudit& audit);

}  // namespace ostro::bundle
