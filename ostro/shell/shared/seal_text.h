// seal_text: what a command prints of the signature and the time stamp of what it published.
#pragma once

#include <string>

namespace ostro::cli {

// `manifest` is the path of bundle.json or publication.json, `key` the fingerprint of the key that signed it;
// empty: none did. With `time_request` it says what to do with the request for a time stamp.
std::string seal_text(const std::string& manifest, const std::string& key, bool time_request);

}  // namespace ostro::cli
