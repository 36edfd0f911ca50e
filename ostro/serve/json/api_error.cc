#include "ostro/serve/json/api_error.h"

#include <nlohmann/json.hpp>

namespace ostro::serve {
namespace {

const char* type_of(int status) {
  if (status == kTooMany) return "rate_limit_error";
  return status >= kServerError ? "server_error" : "invalid_request_error";
}

}  // namespace

std::string error_json(const ApiError& error) {
  const auto text = [](const std::string& value) {
    return value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  const nlohmann::ordered_json out = {{"error",
                                       {{"message", error.message},
                                        {"type", type_of(error.status)},
                                        {"param", text(error.param)},
                                        {"code", text(error.code)}}}};
  // A message can quote bytes of the client.
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

http::Response error_response(const ApiError& error) {
  http::Response out{error.status, "application/json", error_json(error) + "\n"};
  if (error.code == kRunLimit)
    out.headers.emplace_back("x-should-retry", "false");  // what OpenAI's clients look for
  else if (error.status == kTooMany || error.status == kUnavailable)
    out.headers.emplace_back("Retry-After", "1");
  if (error.status == kUnauthorized) out.headers.emplace_back("WWW-Authenticate", "Bearer");
  return out;
}

}  // namespace ostro::serve
