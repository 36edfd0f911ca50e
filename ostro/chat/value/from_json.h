// Values out of JSON.
#pragma once

#include <string_view>

#include "ostro/base/error.h"
#include "ostro/chat/value/value.h"

namespace ostro::chat::jinja {

// Keys keep their order, of a key that comes twice the last value counts, as in Python's json.loads. Errors:
// not JSON (with the byte), numbers beyond 64 bits, more than 200 levels.
Result<Value> from_json(std::string_view json);

}  // namespace ostro::chat::jinja
