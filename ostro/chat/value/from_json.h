// from_json: makes a value from JSON.
#pragma once

#include <string_view>

#include "ostro/base/error.h"
#include "ostro/chat/value/value.h"

namespace ostro::chat::jinja {

// Keys keep their order. If a key occurs twice, the last value counts, as in Python's json.loads. Errors:
// invalid JSON (with the byte), numbers of more than 64 bits, more than 200 levels.
Result<Value> from_json(std::string_view json);

}  // namespace ostro::chat::jinja
