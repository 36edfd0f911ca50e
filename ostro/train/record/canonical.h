// Canonical text of what is hashed into the chain (docs/formats/chain.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::train {

// "0x1.8p+1" for 3: C's %a with the shortest fraction, the same with every C library. "0x0p+0", "-0x0p+0";
// denormals as "0x0.8p-1022"; "inf", "-inf", "nan".
std::string hex_float(double value);
// The inverse; only texts that hex_float gives for finite values are taken.
Result<double> parse_hex_float(std::string_view text);

// The same JSON value with sorted keys, no spaces, integers as they are and numbers with a fraction or an
// exponent as strings of hex_float. A text that is no JSON object is ErrorCode::kInvalidArgument.
Result<std::string> canonical_object(std::string_view json);

// A place where two JSON objects differ: a value that is no object in both, or a key that one of them lacks.
struct ObjectDifference {
  std::vector<std::string> keys;  // from the top
  std::string there, here;        // JSON; empty where it is absent
  std::string path() const;       // "model.num_layers"
};
// Nothing for texts that are no JSON.
std::optional<std::vector<ObjectDifference>> find_differences(std::string_view there, std::string_view here);

// A value of a canonical object with its floats as numbers: JSON.
std::string decimal_json(const std::string& canonical);
// The same for a person, who knows strings without quotes; "absent" for an empty text.
std::string readable_value(const std::string& canonical);

// Where two canonical objects differ, for a person: "model.num_layers is 2 there and 4 here", one per entry.
std::vector<std::string> object_differences(std::string_view there, std::string_view here);

// Whether `text` is a non-empty run of lower-case hexadecimal digits; `digits` > 0 asks for that many.
bool is_lower_hex(std::string_view text, size_t digits = 0);

}  // namespace ostro::train
