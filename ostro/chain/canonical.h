// Canonical text: the text of what is hashed into the chain (docs/reference/formats/chain.md).
//
// Equal values give equal text on every machine. Pure functions; texts that cannot be read are errors or give
// nothing, as each function says.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::chain {

// The text of a double with all its bits, in the style of C's %a with the shortest fraction: "0x1.8p+1" for
// 3. It is the same with every C library. Zeros are "0x0p+0" and "-0x0p+0", denormals look like
// "0x0.8p-1022", and other values are "inf", "-inf", "nan".
std::string hex_float(double value);
// The inverse of hex_float. Only texts that hex_float gives for finite values are accepted.
Result<double> parse_hex_float(std::string_view text);

// The canonical text of a JSON object: sorted keys and no spaces. Integers stay as they are. Numbers with a
// fraction or an exponent become strings of hex_float. Error: kInvalidArgument if the text is not a JSON
// object.
Result<std::string> canonical_object(std::string_view json);

// A place where two JSON objects differ: either a value (at least one side is not an object), or a key that
// only one side has.
struct ObjectDifference {
  std::vector<std::string> keys;  // keys from the root to this place
  std::string there, here;        // JSON texts of the two values; empty on the side that lacks the key
  std::string path() const;       // "model.num_layers"
};
// All differences. No value if one of the texts is not JSON.
std::optional<std::vector<ObjectDifference>> find_differences(std::string_view there, std::string_view here);

// Every value of a JSON object that is not an object itself, for a person to read, with the path of its keys:
// ("model.num_layers", "2"). Empty if the text is not a JSON object.
std::vector<std::pair<std::string, std::string>> values_by_path(std::string_view json);

// Turns a value of a canonical object back to normal JSON: floats are numbers again.
std::string decimal_json(const std::string& canonical);
// The same for a person to read: strings have no quotes, and an empty text becomes "absent".
std::string readable_value(const std::string& canonical);

// The differences of two canonical objects for a person to read, one per entry: "model.num_layers is 2 there
// and 4 here".
std::vector<std::string> object_differences(std::string_view there, std::string_view here);

// Whether `text` consists of lower-case hexadecimal digits and is not empty. With `digits` > 0 it must have
// exactly that length.
bool is_lower_hex(std::string_view text, size_t digits = 0);
// An error for a --run_hash that no run can have. An empty one stands for none.
Status check_run_hash(const std::string& run_hash);

}  // namespace ostro::chain
