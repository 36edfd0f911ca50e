#include "ostro/bundle/parts/write_manifest.h"

#include "ostro/bundle/parts/time_token.h"
#include "ostro/io/files/path.h"

namespace ostro::bundle {

Status write_manifest(io::FileSystem& fs, const std::string& place, const ManifestToWrite& manifest,
                      const SigningKey* key, bool with_time_request) {
  const std::string path = io::join_path(place, manifest.name);
  RETURN_IF_ERROR(fs.write_file(path, manifest.text));
  RETURN_IF_ERROR(fs.write_file(io::join_path(place, kSumsFile),
                                sums_text(manifest.files, manifest.text, manifest.name)));
  if (key != nullptr) {
    RETURN_IF_ERROR(fs.write_file(path + ".sig", key->sign(manifest.text)));
    RETURN_IF_ERROR(fs.write_file(path + ".pub", key->public_key().pem()));
  }
  return with_time_request ? fs.write_file(path + ".tsq", time_request(manifest.text)) : Status();
}

}  // namespace ostro::bundle
