#include "ostro/shell/shared/seal_text.h"

#include <fmt/core.h>

#include "ostro/io/files/path.h"

namespace ostro::cli {

std::string seal_text(const std::string& manifest, const std::string& key, bool time_request) {
  std::string out = key.empty() ? "not signed: --sign KEY.pem ties it to a key of yours\n"
                                : fmt::format("signed by the key {}\n", key);
  if (time_request)
    out +=
        fmt::format("time: send {}.tsq to a time-stamping service, and put its answer beside it as {}.tsr\n",
                    manifest, io::base_name(manifest));
  return out;
}

}  // namespace ostro::cli
