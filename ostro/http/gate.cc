#include "ostro/http/gate.h"

#include <string_view>

#include "ostro/base/sha256.h"

namespace ostro::http {
namespace {

std::string value_of(const std::map<std::string, std::string>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

// "localhost:8080" without the port.
std::string_view without_port(std::string_view host) {
  const size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos &&
                        (host.starts_with('[') || host.find(':') == colon);
  return has_port ? host.substr(0, colon) : host;
}

}  // namespace

std::optional<Response> Gate::refusal(const Request& request) const {
  if (token_.empty()) {
    const std::string host = value_of(request.headers, "host");
    const std::string_view name = without_port(host);
    if (name == "localhost" || name == "127.0.0.1" || name == "[::1]") return std::nullopt;
    return Response{403, "text/plain; charset=utf-8",
                    "this server answers to localhost, 127.0.0.1 and [::1] only\n"};
  }
  constexpr std::string_view kBearer = "Bearer ";
  std::string given = value_of(request.query, "token");
  if (const std::string word = value_of(request.headers, "authorization"); word.starts_with(kBearer))
    given = word.substr(kBearer.size());
  if (same_code(given, token_)) return std::nullopt;
  return Response{401, "text/plain; charset=utf-8",
                  "the token is missing or wrong; open the address that the server printed when it began\n"};
}

std::string new_token() {
  const Nonce nonce = new_nonce();
  return sha256_hex(std::string_view(nonce.data(), nonce.size())).substr(0, 32);
}

}  // namespace ostro::http
