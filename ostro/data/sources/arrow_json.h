// arrow_text, append_json: values of Arrow arrays as text and as JSON. Includes Arrow's headers, so only the
// Parquet reader uses it.
#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ostro::data {

// True if values of this type are strings (string, large_string, string_view, or a dictionary of them).
bool is_arrow_text(const arrow::DataType& type);
// A string of an array of such a type; it must not be null.
std::string_view arrow_text(const arrow::Array& array, int64_t row);

// The first part of the type that has no JSON form, e.g. "timestamp[us]". Nothing when all parts have one.
std::optional<std::string> without_json(const arrow::DataType& type);
// Appends a value as Python's json.dumps would write it, except for spaces and escapes: null, true, integers,
// shortest decimals, strings (their bytes unchanged), lists, structs in the order of their fields. False for
// a number that JSON does not have (NaN, infinity); `out` is of no use then.
bool append_json(const arrow::Array& array, int64_t row, std::string& out);
void append_json_string(std::string_view text, std::string& out);

}  // namespace ostro::data
