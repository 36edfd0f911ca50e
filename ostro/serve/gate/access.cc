#include "ostro/serve/gate/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"

namespace ostro::serve {
namespace {

constexpr std::string_view kMetrics = "/metrics", kReadsMetrics = "metrics";

std::string header(const http::Request& request, const char* name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

// A page of another origin may send a request that a browser does not ask about first. Behind a proxy the
// page came by https.
bool is_foreign(const http::Request& request) {
  const std::string origin = header(request, "origin"), host = header(request, "host");
  return !origin.empty() && origin != "http://" + host && origin != "https://" + host;
}

std::string bearer(const http::Request& request) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string word = header(request, "authorization");
  std::string kind = word.substr(0, kBearer.size());
  std::transform(kind.begin(), kind.end(), kind.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return kind == kBearer ? word.substr(kBearer.size()) : "";
}

}  // namespace

Result<Access> Access::create(const http::Address& address, std::optional<ApiKeys> keys) {
  if (!keys && !address.is_loopback() && !address.is_unix())
    return invalid_argument(
        fmt::format("--listen {}: other machines could ask, so keys are needed (--api_keys FILE, "
                    "docs/guide/serve.md); or "
                    "listen on this machine alone (127.0.0.1:{}) and reach it by ssh -L {}:127.0.0.1:{} HOST",
                    http::address_text(address, address.port), address.port, address.port, address.port));
  return Access(address.is_loopback(), std::move(keys));
}

bool Access::is_open(const std::string& path) { return path == "/" || path == "/health" || path == "/ready"; }

std::string Access::owner(const http::Request& request) const {
  return keys_ ? sha256_hex(bearer(request)) : "";
}

std::string Access::sharer(const http::Request& request) const {
  return keys_ && keys_->count_without(kReadsMetrics) > 1 ? owner(request) : "";
}

std::optional<ApiError> Access::refusal(const http::Request& request) {
  if (loopback_)
    if (const auto refused = http::Gate("").refusal(request))
      return ApiError{refused->status, refused->body.substr(0, refused->body.find('\n'))};
  if (!keys_) {
    if (is_foreign(request)) return ApiError{kForbidden, "pages of other origins may not ask this server"};
    return std::nullopt;
  }
  if (is_open(request.path)) return std::nullopt;
  const Status read = keys_->read();
  const std::string trouble = read.ok() ? "" : read.error().message();
  if (trouble != trouble_ && !trouble.empty())
    log_error("--api_keys: " + trouble + "; no key is taken until it is right");
  trouble_ = trouble;
  if (!read.ok()) return ApiError{kUnavailable, "the server cannot read its keys now; its log says why"};
  const std::string key = bearer(request);
  if (key.empty())
    return ApiError{kUnauthorized, "this server wants a key: \"Authorization: Bearer KEY\"", "",
                    "invalid_api_key"};
  const std::string name = keys_->owner(key);
  if (name.empty())
    return ApiError{kUnauthorized, "the key is not one of this server's, or it was taken back", "",
                    "invalid_api_key"};
  const bool is_metrics = request.path == kMetrics;
  if (is_metrics && name != kReadsMetrics)
    return ApiError{kForbidden,
                    "/metrics tells of the requests of all keys; only the key with the name "
                    "\"metrics\" in the server's file of keys reads it"};
  if (!is_metrics && name == kReadsMetrics)
    return ApiError{kForbidden, fmt::format("the key with the name \"metrics\" reads /metrics alone, not {}; "
                                            "use another key",
                                            request.path)};
  return std::nullopt;
}

}  // namespace ostro::serve
