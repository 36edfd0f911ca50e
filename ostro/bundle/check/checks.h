// BundleCheck: the state of the check of a bundle, and the checks of its parts, each of which adds its
// findings to it.
//
// check_bundle calls the checks one after the other; each of them may use several threads.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ostro/bundle/check/check_bundle.h"

namespace ostro::bundle {

// The largest file that is read as a signature, key, certificate or time stamp; real ones are far smaller.
inline constexpr int64_t kMostSealBytes = 1 << 20;

struct BundleCheck {
  const Context& context;
  std::string directory;
  const BundleOptions& options;
  int threads = 1;
  std::string text;  // the text of the manifest
  BundleManifest manifest;
  std::optional<chain::Chain> chain;  // set by check_chain; nothing when it cannot be read
  BundleAudit audit;
  // What the directory is, and the name of its manifest: check_files and check_seal serve other directories
  // that are published, too.
  const char* noun = "bundle";
  std::string name = kManifestFile;
  // Whether another check compares this file; null: none does.
  std::function<bool(const std::string&)> is_elsewhere = {};

  // The path of a file of the bundle.
  std::string path(const std::string& below) const;
  // Adds a finding. That of an error is as by audit::finding_of, but a missing file is kIncomplete.
  void find(audit::Verdict verdict, std::string text);
  void find(const Error& error);
  void show(std::string text) { audit.shown.push_back(std::move(text)); }
  void leave(std::string text) { audit.not_shown.push_back(std::move(text)); }
  size_t findings() const { return audit.findings.size(); }
};

// Compares every file with the manifest, and SHA256SUMS.
void check_files(BundleCheck& check);
// Checks signature and time stamp of the manifest. Errors as check_bundle.
Status check_seal(BundleCheck& check);
// Checks the chain, and compares it with what bundle.json repeats of it.
void check_chain(BundleCheck& check);
// Checks the record as a run: configuration, programs, tokenizer and states.
void check_record(BundleCheck& check);
// Compares the ledger with the chain.
void check_ledger(BundleCheck& check);
// Compares the weights, and the files beside them, with the published state.
void check_weights(BundleCheck& check);

}  // namespace ostro::bundle
