// json_text, new_id and others: parts that all forms of answers have. Private to this room. Includes
// nlohmann/json.hpp, so use it in .cc files only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ostro/http/message.h"
#include "ostro/serve/json/tools.h"

namespace ostro::serve {

// A line of JSON. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& value);
http::Response json_response(const nlohmann::ordered_json& value);  // status 200, json_text and a line feed

// "chatcmpl-" and 24 digits that no other answer has.
std::string new_id(const char* prefix);
int64_t seconds_since_1970();
// "ostro-1-3fa8...": the version of the numerics and the names of the parameters (ModelFacts::parameters),
// with "-" between them.
std::string fingerprint(std::string parameters);
// "tool_calls" of a message; in a stream every call has its number, too.
nlohmann::ordered_json calls_json(const std::vector<ToolCall>& calls, bool numbered);

}  // namespace ostro::serve
