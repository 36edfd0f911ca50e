// BundleCheck: a bundle while it is checked, and the checks of its parts, each of which adds what it finds.
//
// They are called one after the other by check_bundle, each of which may use several threads.
#pragma once

#include <optional>
#include <string>

#include "ostro/bundle/check/check_bundle.h"

namespace ostro::bundle {

// Signatures, keys, certificates and time stamps are far smaller.
inline constexpr int64_t kMostSealBytes = 1 << 20;

struct BundleCheck {
  const Context& context;
  std::string directory;
  const BundleOptions& options;
  int threads = 1;
  std::string text;  // of bundle.json
  BundleManifest manifest;
  std::optional<chain::Chain> chain;  // after check_chain, where it can be read
  BundleAudit audit;

  std::string path(const std::string& below) const;
  void find(audit::Verdict verdict, std::string text);
  void find(const Error& error);  // as audit::finding_of, but a file that is not there is incomplete
  void show(std::string text) { audit.shown.push_back(std::move(text)); }
  void leave(std::string text) { audit.not_shown.push_back(std::move(text)); }
  size_t findings() const { return audit.findings.size(); }
};

// Every file against bundle.json; SHA256SUMS.
void check_files(BundleCheck& check);
// Signature and time stamp of bundle.json. Errors as check_bundle.
Status check_seal(BundleCheck& check);
// The chain against itself and against what bundle.json repeats of it.
void check_chain(BundleCheck& check);
// The record as a run: configuration, programs, tokenizer and states.
void check_record(BundleCheck& check);
// The ledger against the chain.
void check_ledger(BundleCheck& check);
// The weights, and what lies beside them, against the published state.
void check_weights(BundleCheck& check);

}  // namespace ostro::bundle
