// base64_encode, base64_decode: Base64 (RFC 4648, with padding). tokenizer.json stores bytes in it.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::tokenizer {

// Error of base64_decode: kCorrupt for text that is not Base64.
std::string base64_encode(std::string_view bytes);
Result<std::string> base64_decode(std::string_view text);

}  // namespace ostro::tokenizer
