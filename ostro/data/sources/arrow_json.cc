#include "ostro/data/sources/arrow_json.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace ostro::data {
namespace {

using arrow::Type;

template <typename ArrayType>
bool append_number(const arrow::Array& array, int64_t row, std::string& out) {
  const auto value = static_cast<const ArrayType&>(array).Value(row);
  if constexpr (std::is_floating_point_v<decltype(value)>) {
    if (!std::isfinite(value)) return false;
    const size_t begin = out.size();
    fmt::format_to(std::back_inserter(out), "{}", value);
    if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
  return true;
}

bool append_range(const arrow::Array& values, int64_t begin, int64_t end, std::string& out) {
  out += '[';
  for (int64_t i = begin; i < end; ++i) {
    if (i > begin) out += ',';
    if (!append_json(values, i, out)) return false;
  }
  out += ']';
  return true;
}

template <typename ArrayType>
bool append_list(const arrow::Array& array, int64_t row, std::string& out) {
  const auto& list = static_cast<const ArrayType&>(array);
  const int64_t begin = list.value_offset(row);
  return append_range(*list.values(), begin, begin + list.value_length(row), out);
}

bool append_struct(const arrow::Array& array, int64_t row, std::string& out) {
  const auto& values = static_cast<const arrow::StructArray&>(array);
  out += '{';
  for (int i = 0; i < values.num_fields(); ++i) {
    if (i > 0) out += ',';
    append_json_string(values.type()->field(i)->name(), out);
    out += ':';
    if (!append_json(*values.field(i), row, out)) return false;
  }
  out += '}';
  return true;
}

}  // namespace

bool is_arrow_text(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::STRING:
    case Type::LARGE_STRING:
    case Type::STRING_VIEW: return true;
    case Type::DICTIONARY:
      return is_arrow_text(*static_cast<const arrow::DictionaryType&>(type).value_type());
    default: return false;
  }
}

std::string_view arrow_text(const arrow::Array& array, int64_t row) {
  switch (array.type_id()) {
    case Type::STRING: return static_cast<const arrow::StringArray&>(array).GetView(row);
    case Type::LARGE_STRING: return static_cast<const arrow::LargeStringArray&>(array).GetView(row);
    case Type::STRING_VIEW: return static_cast<const arrow::StringViewArray&>(array).GetView(row);
    default: {
      const auto& words = static_cast<const arrow::DictionaryArray&>(array);
      return arrow_text(*words.dictionary(), words.GetValueIndex(row));
    }
  }
}

std::optional<std::string> without_json(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::NA:
    case Type::BOOL:
    case Type::INT8:
    case Type::INT16:
    case Type::INT32:
    case Type::INT64:
    case Type::UINT8:
    case Type::UINT16:
    case Type::UINT32:
    case Type::UINT64:
    case Type::FLOAT:
    case Type::DOUBLE:
    case Type::STRING:
    case Type::LARGE_STRING:
    case Type::STRING_VIEW: return std::nullopt;
    case Type::DICTIONARY: return without_json(*static_cast<const arrow::DictionaryType&>(type).value_type());
    case Type::LIST:
    case Type::LARGE_LIST:
    case Type::FIXED_SIZE_LIST:
    case Type::STRUCT:
      for (const auto& field : type.fields())
        if (auto found = without_json(*field->type())) return found;
      return std::nullopt;
    default: return type.ToString();
  }
}

bool append_json(const arrow::Array& array, int64_t row, std::string& out) {
  if (array.IsNull(row)) {
    out += "null";
    return true;
  }
  switch (array.type_id()) {
    case Type::BOOL:
      out += static_cast<const arrow::BooleanArray&>(array).Value(row) ? "true" : "false";
      return true;
    case Type::INT8: return append_number<arrow::Int8Array>(array, row, out);
    case Type::INT16: return append_number<arrow::Int16Array>(array, row, out);
    case Type::INT32: return append_number<arrow::Int32Array>(array, row, out);
    case Type::INT64: return append_number<arrow::Int64Array>(array, row, out);
    case Type::UINT8: return append_number<arrow::UInt8Array>(array, row, out);
    case Type::UINT16: return append_number<arrow::UInt16Array>(array, row, out);
    case Type::UINT32: return append_number<arrow::UInt32Array>(array, row, out);
    case Type::UINT64: return append_number<arrow::UInt64Array>(array, row, out);
    case Type::FLOAT: return append_number<arrow::FloatArray>(array, row, out);
    case Type::DOUBLE: return append_number<arrow::DoubleArray>(array, row, out);
    case Type::LIST: return append_list<arrow::ListArray>(array, row, out);
    case Type::LARGE_LIST: return append_list<arrow::LargeListArray>(array, row, out);
    case Type::FIXED_SIZE_LIST: return append_list<arrow::FixedSizeListArray>(array, row, out);
    case Type::STRUCT: return append_struct(array, row, out);
    case Type::DICTIONARY: {
      const auto& words = static_cast<const arrow::DictionaryArray&>(array);
      return append_json(*words.dictionary(), words.GetValueIndex(row), out);
    }
    default: append_json_string(arrow_text(array, row), out); return true;
  }
}

void append_json_string(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace ostro::data
