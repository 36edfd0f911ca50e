#include "ostro/data/sources/row_values.h"

#include <fmt/core.h>

#include "ostro/chat/value/from_json.h"
#include "ostro/chat/value/mapping.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::data {

using chat::jinja::Value;

std::string as_utf8(std::string bytes, bool& repaired) {
  repaired = !tokenizer::is_valid_utf8(bytes);
  return repaired ? tokenizer::repair_utf8(bytes) : std::move(bytes);
}

Result<Value> row_object(const Row& row, std::string_view format_name,
                         std::initializer_list<std::string_view> used, bool& repaired) {
  if (row.is_text)
    return invalid_argument(
        fmt::format("is a text, and the format {} needs objects; use .jsonl or .parquet files", format_name));
  ASSIGN_OR_RETURN(Value object,
                   chat::jinja::from_json(as_utf8(row.bytes, repaired), {used.begin(), used.size()}));
  if (!object.is_mapping()) return invalid_argument("not a JSON object");
  return object;
}

Result<Value> row_field(const Value& object, const std::string& name, std::string_view option) {
  const Value* found = object.as_mapping().find(name);
  if (found == nullptr)
    return invalid_argument(
        fmt::format("has no field \"{}\"; set {} to the name of the field", name, option));
  return *found;
}

Result<std::string> row_text(const Value& object, const std::string& name, std::string_view option) {
  ASSIGN_OR_RETURN(const Value field, row_field(object, name, option));
  if (!field.is_text())
    return invalid_argument(
        fmt::format("field \"{}\" is a {}, not a string ({})", name, field.type_name(), option));
  return field.as_text();
}

}  // namespace ostro::data
