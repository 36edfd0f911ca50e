// publish: writes a bundle: a model with all that a stranger needs to check it
// (docs/reference/formats/bundle.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/bundle/check/check_bundle.h"
#include "ostro/bundle/parts/file_sums.h"
#include "ostro/bundle/parts/manifest.h"
#include "ostro/context/context.h"
#include "ostro/hf/export.h"

namespace ostro::bundle {

struct PublishRequest {
  std::string run, out;          // the run's directory; the bundle's, which must not exist
  std::string cache;             // the token store; empty: found as open_run_data() says
  bool without_ledger = false;   // publish without a ledger, because no token store is at hand
  std::string sign;              // file of a private key; empty: the bundle is not signed
  int64_t checkpoints = 0;       // how many beside the published one
  bool parameters_only = false;  // leaves the moments of checkpoints out
  std::optional<std::string> license, base_model;
  std::vector<std::string> license_files;
  std::string dtype;  // type of the weights, as for `ostro export`
  int64_t shard_bytes = hf::kMaxFileBytes;
  bool merge_lora = false;
  bool without_model = false;  // publishes the record alone, without the files of a model
  bool score = false;          // writes record/score.ir, the program that scores texts, for a board
  bool time_request = false;   // writes bundle.json.tsq
  std::string version;         // the version of this program
};

struct Published {
  BundleManifest manifest;
  FolderSize size;                   // of the bundle
  std::string key;                   // fingerprint of the key that signed; empty: not signed
  std::string replay;                // replay_text()
  std::vector<std::string> remarks;  // findings of its check; empty: the verdict is equal
};

// Publishes the newest state that the run's chain names. The bundle is there whole or not at all, and it was
// checked (check/check_bundle.h) before it got its name. Errors: kInvalidArgument for options that do not
// belong together, and where the run's data is not at hand; kNotFound for a run whose chain names no state;
// kCorrupt for a record that contradicts itself; those of export_model and of writing.
Result<Published> publish(const Context& context, const PublishRequest& request);

// What a program of this version says of itself: canonical JSON of `version`, `source_commit`,
// `binary_sha256` and `compiler`.
std::string program_json(const std::string& version);

// What is said of an `audit` of a directory that was written in `place` and will be at `out`: a line for each
// finding, with the paths below `out`. Error: kCorrupt, with the worst of them, for an audit that would
// refuse it; `noun` says what it is ("bundle").
Result<std::vector<std::string>> remarks_of(const BundleAudit& audit, const char* noun,
                                            const std::string& place, const std::string& out);

}  // namespace ostro::bundle
