#include "ostro/tokenizer/split/json_fields.h"

#include <fmt/core.h>

namespace ostro::tokenizer {
namespace {

constexpr size_t kShownJson = 120;

}  // namespace

std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kShownJson) return text;
  text.resize(kShownJson);
  return text + "...";
}

const Json& member(const Json& json, const char* key) {
  static const Json null;
  const auto it = json.find(key);
  return it == json.end() ? null : *it;
}

std::string type_of(const Json& json) {
  const Json& type = member(json, "type");
  return type.is_string() ? type.get<std::string>() : "";
}

Error not_supported(std::string_view where, const Json& json) {
  const std::string type = type_of(json);
  return unsupported(fmt::format("{} {}{}{} is not supported (docs/reference/tokenizer.md lists what is)",
                                 where, type, type.empty() ? "" : " ", shown(json)));
}

Result<bool> flag(const Json& json, const char* key, bool fallback) {
  const Json& value = member(json, key);
  if (value.is_null()) return fallback;
  if (!value.is_boolean())
    return corrupt(fmt::format("\"{}\" is {}, expected true or false", key, shown(value)));
  return value.get<bool>();
}

Result<std::string> text_field(const Json& json, const char* key) {
  const Json& value = member(json, key);
  if (!value.is_string())
    return corrupt(fmt::format("\"{}\" of {} is {}, expected a string", key, type_of(json), shown(value)));
  return value.get<std::string>();
}

Result<int64_t> count_field(const Json& json, const char* key) {
  const Json& value = member(json, key);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMaxId)
    return corrupt(
        fmt::format("\"{}\" of {} is {}, expected a small number", key, type_of(json), shown(value)));
  return value.get<int64_t>();
}

Result<uint32_t> id_value(const Json& json, std::string_view what) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > kMaxId) {
    return corrupt(fmt::format("the id of {} is {}, expected 0 to {}", what, shown(json), kMaxId));
  }
  return json.get<uint32_t>();
}

Result<std::vector<const Json*>> components(const Json& json, const char* where, const char* list) {
  std::vector<const Json*> out;
  if (json.is_null()) return out;
  if (type_of(json) != "Sequence") {
    out.push_back(&json);
    return out;
  }
  const Json& members = member(json, list);
  if (!members.is_array()) return corrupt(fmt::format("{}: a Sequence without \"{}\"", where, list));
  for (const Json& item : members) {
    ASSIGN_OR_RETURN(const auto inner, components(item, where, list));
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

}  // namespace ostro::tokenizer
