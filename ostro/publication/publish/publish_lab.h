// publish_lab: writes a publication: a lab that is finished, with all that a stranger needs to check it
// (docs/reference/formats/publication.md).
#pragma once

#include <string>
#include <vector>

#include "ostro/bundle/parts/file_sums.h"
#include "ostro/context/context.h"
#include "ostro/publication/parts/manifest.h"

namespace ostro::publication {

struct PublishRequest {
  std::string plan, out;      // the plan's file; the directory to make, which must not exist
  std::string sign;           // file of a private key; empty: nothing is signed
  int64_t checkpoints = 0;    // of each run, beside the last one
  bool records_only = false;  // no bundles: runs without weights and states
  bool time_request = false;  // writes publication.json.tsq
  std::string licence;        // of models and texts of the plan; empty: none is named
  std::string version;        // of this program
};

struct Published {
  PublicationManifest manifest;
  bundle::FolderSize size;  // of the publication
  int64_t bundles = 0;
  std::string key;                   // fingerprint of the key that signed; empty: not signed
  std::vector<std::string> remarks;  // files that were left out, and findings of its check
};

// Publishes the lab of a plan, whose steps are all done; every byte of the outputs is compared with the
// journal first. The publication is there whole or not at all, and it was checked (check_publication.h)
// before it got its name. Errors: a step that is not done or was changed; those of bundle::publish, of
// write_site and of writing.
Result<Published> publish_lab(const Context& context, const PublishRequest& request);

}  // namespace ostro::publication
