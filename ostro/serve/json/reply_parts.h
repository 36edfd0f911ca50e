// new_id, fingerprint and others: parts that all forms of answers have. Private to this room. Includes
// nlohmann/json.hpp, so use it in .cc files only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ostro/serve/json/tools.h"

namespace ostro::serve {

// "chatcmpl-" and 24 digits that no other answer has.
std::string new_id(const char* prefix);
int64_t seconds_since_1970();
// "ostro-1-3fa8...": the version of the numerics and the name of the state.
std::string fingerprint(const std::string& state);
// "tool_calls" of a message; in a stream every call has its number, too.
nlohmann::ordered_json calls_json(const std::vector<ToolCall>& calls, bool numbered);

}  // namespace ostro::serve
