// write_manifest: writes the manifest of a directory that is published, with what is made of its text:
// SHA256SUMS, signature, public key, request for a time stamp.
#pragma once

#include <map>
#include <string>

#include "ostro/bundle/parts/manifest.h"
#include "ostro/bundle/parts/signature.h"
#include "ostro/io/files/file_system.h"

namespace ostro::bundle {

struct ManifestToWrite {
  std::string name, text;                // of the file
  std::map<std::string, FileSum> files;  // that it lists, for SHA256SUMS
};

// Writes into the directory `place`; signed by the key if it is not null. Errors: those of writing.
Status write_manifest(io::FileSystem& fs, const std::string& place, const ManifestToWrite& manifest,
                      const SigningKey* key, bool with_time_request);

}  // namespace ostro::bundle
