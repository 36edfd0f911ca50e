// flag, text_field, components and others: read fields of a parsed tokenizer.json, with errors that show the
// value. Includes the JSON library, so include it only in .cc files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::tokenizer {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// The value as text for an error message, shortened.
std::string shown(const Json& json);

// The member, or null when it is absent.
const Json& member(const Json& json, const char* key);

// The "type" of a component; "" when it has none.
std::string type_of(const Json& json);

// A kUnsupported error that names the place, the component's type and its content.
Error not_supported(std::string_view where, const Json& json);

// Each returns a field of an object. Error: kCorrupt for a field that is absent or of another type; it names
// the key and shows the value. `flag` returns `fallback` when the key is absent or null. The value of
// `count_field` is a whole number from 0 to kMaxId.
Result<bool> flag(const Json& json, const char* key, bool fallback);
Result<std::string> text_field(const Json& json, const char* key);
Result<int64_t> count_field(const Json& json, const char* key);

inline constexpr uint32_t kMaxId = (1u << 24) - 1;  // a larger id means that the file is damaged
// A token id, at most kMaxId. `what` names the value in an error.
Result<uint32_t> id_value(const Json& json, std::string_view what);

// Returns the list of components: the members of a Sequence (also of nested ones), or the component itself;
// an empty list for null. `list` is the key of a Sequence's members, `where` names the place in an error. The
// pointers are into `json`.
Result<std::vector<const Json*>> components(const Json& json, const char* where, const char* list);

}  // namespace ostro::tokenizer
