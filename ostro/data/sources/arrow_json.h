// Values of Arrow arrays as text and as JSON. Only for files of the Parquet reader: pulls in Arrow's headers.
#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ostro::data {

// Whether values of this type are strings (string, large_string, string_view, or a dictionary of them).
bool is_arrow_text(const arrow::DataType& type);
// A string that is not null; the array must be of such a type.
std::string_view arrow_text(const arrow::Array& array, int64_t row);

// The first part of the type that has no JSON, e.g. "timestamp[us]"; nothing when all have.
std::optional<std::string> without_json(const arrow::DataType& type);
// Appends a value as Python's json.dumps would write it, but for spaces and escapes: null, true, integers,
// shortest decimals, strings (their bytes as they are), lists, structs in the order of their fields. False
// for a number that JSON does not have (not a number, infinite); what was appended then is of no use.
bool append_json(const arrow::Array& array, int64_t row, std::string& out);
void append_json_string(std::string_view text, std::string& out);

}  // namespace ostro::data
