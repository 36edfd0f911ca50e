// Body: the JSON object that is the body of a request, parsed once.
//
// Input: the text. Errors: those of parse_body (fields.h), which error() returns. A value that threads may
// share.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "ostro/serve/json/api_error.h"

namespace ostro::serve {

class Body {
 public:
  Body(std::string_view text);                                     // NOLINT: it stands for its text
  Body(const std::string& text) : Body(std::string_view(text)) {}  // NOLINT
  Body(const char* text) : Body(std::string_view(text)) {}         // NOLINT

  // What is wrong with it; json() is then null.
  const std::optional<ApiError>& error() const { return error_; }
  const nlohmann::ordered_json& json() const { return *json_; }
  // The model that it names; "": none, or it is wrong.
  std::string model() const;

 private:
  std::shared_ptr<const nlohmann::ordered_json> json_;
  std::optional<ApiError> error_;
};

}  // namespace ostro::serve
