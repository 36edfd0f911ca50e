// probe_store: whether a run can have its directory in a folder of an object store, by trying all that a run
// needs of it.
#pragma once

#include <string>

#include "ostro/base/error.h"
#include "ostro/objects/s3/s3_client.h"

namespace ostro::objects {

struct StoreProbe {
  std::string server;  // "http://host:port", or Amazon's of a region
  std::string keys;    // where they come from, never what they are; "": there are none
  bool seen = false;   // `marker` is there
};

// Puts the object `name` into the folder, tries two more writes that must be refused (If-None-Match,
// If-Match), reads, lists and removes it. `marker`: an object that another process has put there; "": none.
// Errors say what failed and what helps; the object is then removed, too, if that can be done.
Result<StoreProbe> probe_store(S3Client& client, const S3Path& folder, const std::string& name,
                               const std::string& marker);

// The same with keys and server of this process's environment, three attempts a request of half a
// minute each. Errors: also those of s3_options() and parse_s3_path().
Result<StoreProbe> probe_store_from_environment(const std::string& url, const std::string& name,
                                                const std::string& marker);

}  // namespace ostro::objects
