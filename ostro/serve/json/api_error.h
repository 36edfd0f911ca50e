// ApiError: why a request is not answered, and its form in OpenAI's API.
#pragma once

#include <string>

#include "ostro/base/error.h"
#include "ostro/http/message.h"

namespace ostro::serve {

// HTTP's numbers.
inline constexpr int kNoContent = 204, kBadRequest = 400, kUnauthorized = 401, kForbidden = 403,
                     kNotFound = 404, kNotAllowed = 405, kTooLarge = 413, kTooMany = 429, kServerError = 500,
                     kUnavailable = 503;

// The code of a request that ran for too long. The same request would do so again: clients are told not to
// repeat it by themselves.
inline constexpr const char* kRunLimit = "run_limit";
// That of one that waited for too long.
inline constexpr const char* kWaitLimit = "wait_limit";

struct ApiError {
  int status = kBadRequest;
  std::string message;
  std::string param = {};  // the field that is wrong; empty: none in particular
  std::string code = {};   // "model_not_found"; empty: none
};

// {"error": {"message", "type", "param", "code"}}, one line.
std::string error_json(const ApiError& error);
// With a Retry-After where trying again can help (429, 503 but not kRunLimit).
http::Response error_response(const ApiError& error);

}  // namespace ostro::serve
