// to_json, parse_genesis, need_hex: the JSON of a genesis, and checks of fields that entries share. Includes
// nlohmann/json.hpp, so it is for .cc files only. Pure functions.
#pragma once

#include "ostro/chain/genesis.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::chain {

// Error: kInvalidArgument unless `text` has `digits` lower-case hexadecimal digits (0: at least one).
Status need_hex(const char* field, const std::string& text, size_t digits = 0);
inline constexpr size_t kHashDigits = 64;

// Error: kInvalidArgument when `step` is below `low`.
Status need_step(int64_t step, int64_t low);

// The text of a value, with sorted keys and without spaces.
std::string canonical_text(const nlohmann::json& json);

// The JSON of a genesis, without "h". Errors as entry_json.
Result<nlohmann::json> to_json(const GenesisEntry& entry);
// Reads a genesis. Errors: kUnsupported for a later format, kCorrupt with the field.
Result<GenesisEntry> parse_genesis(const io::JsonFields& fields);

}  // namespace ostro::chain
