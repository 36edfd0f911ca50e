// publish: writes a bundle: a model with all that a stranger needs to check it
// (docs/reference/formats/bundle.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

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
  bool time_request = false;  // writes bundle.json.tsq
  std::string version;        // the version of this program
};

struct Published {
  BundleManifest manifest;
  int64_t files = 0, bytes = 0;  // in the bundle
  std::string key;               // fingerprint of the key that signed; empty: not signed
  std::string replay;            // replay_text()
  std::string remark;            // findings of its check, a line each; empty: the verdict is equal
};

// Publishes the newest state that the run's chain names. The bundle is there whole or not at all, and it was
// checked (check/check_bundle.h) before it got its name. Errors: kInvalidArgument for options that do not
// belong together, and where the run's data is not at hand; kNotFound for a run whose chain names no state;
// kCorrupt for a record that contradicts itself; those of export_model and of writing.
Result<Published> publish(const Context& context, const PublishRequest& request);

}  // namespace ostro::bundle
