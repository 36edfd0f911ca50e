#include "ostro/http/gate.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <string_view>

namespace ostro::http {
namespace {

// Takes as long wherever the texts differ.
bool is_same_text(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    different |=
        static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? '\0' : b[i % b.size()]);
  return different == 0;
}

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
  if (is_same_text(given, token_)) return std::nullopt;
  return Response{401, "text/plain; charset=utf-8",
                  "the token is missing or wrong; open the address that the server printed when it began\n"};
}

Result<std::string> new_token() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    return io_error("no random numbers for a token");
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

}  // namespace ostro::http
