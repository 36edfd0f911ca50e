#include "ostro/serve/options/opened_options.h"

#include <fmt/format.h>

#include <utility>

namespace ostro::serve {

Status check_options(const ServeOptions& options) {
  constexpr int64_t kMostRunning = 512, kMostPages = 1 << 24;
  if (options.waiting < 1)
    return invalid_argument(fmt::format("--waiting {}: use 1 or more", options.waiting));
  if (options.running < 1 || options.running > kMostRunning)
    return invalid_argument(fmt::format("--running {}: use 1 to {}", options.running, kMostRunning));
  if (options.cache_pages < 0 || options.cache_pages > kMostPages)
    return invalid_argument(
        fmt::format("--cache_pages {}: use 1 to {}, or 0 for the default", options.cache_pages, kMostPages));
  return {};
}

Result<OpenedOptions> open_options(io::FileSystem& fs, const ServeOptions& options) {
  OpenedOptions out;
  if (!options.api_keys.empty()) {
    ASSIGN_OR_RETURN(out.keys, ApiKeys::open(fs, options.api_keys));
  }
  std::optional<bundle::SigningKey> key;
  if (!options.sign.empty()) {
    ASSIGN_OR_RETURN(key, bundle::SigningKey::read(fs, options.sign));
  }
  ASSIGN_OR_RETURN(out.receipts, ReceiptMaker::open(fs, options.receipts, std::move(key)));
  return out;
}

}  // namespace ostro::serve
