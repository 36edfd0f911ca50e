// from_json: makes a value from JSON.
#pragma once

#include <span>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/chat/value/value.h"

namespace ostro::chat::jinja {

// Keys keep their order. If a key occurs twice, the last value counts, as in Python's json.loads. Errors:
// invalid JSON (with the byte), numbers of more than 64 bits, more than 200 levels. `used`: the fields of the
// outer object that are read; a number that does not fit is none in the others. Empty: all.
Result<Value> from_json(std::string_view json, std::span<const std::string_view> used = {});

}  // namespace ostro::chat::jinja
