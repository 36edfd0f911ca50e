// JsonFields: reads fields of JSON from untrusted files.
//
// Every error is ErrorCode::kCorrupt and names the file and the field. Includes nlohmann/json.hpp, so use it
// in .cc files only.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::io {

// Reads the fields of one JSON object. `where` names it in errors ("path: chunk_grid"). The object must
// outlive this.
class JsonFields {
 public:
  using Json = nlohmann::json;

  JsonFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  bool has(std::string_view key) const { return object_.is_object() && object_.contains(key); }

  Error bad(std::string_view key, std::string_view wanted) const {
    return corrupt(fmt::format("{}: \"{}\" {}", where_, key, wanted));
  }

  Result<const Json*> get(std::string_view key) const {
    if (!object_.is_object()) return corrupt(fmt::format("{}: not a JSON object", where_));
    const auto found = object_.find(key);
    if (found == object_.end()) return bad(key, "is missing");
    return &*found;
  }

  Result<std::string> string(std::string_view key) const {
    ASSIGN_OR_RETURN(const Json* value, get(key));
    if (!value->is_string()) return bad(key, "is not a string");
    return value->get<std::string>();
  }

  // 64 lower-case hexadecimal digits.
  Result<std::string> sha256(std::string_view key) const {
    ASSIGN_OR_RETURN(std::string text, string(key));
    if (text.size() != 64 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
      return bad(key, "is not a SHA-256 in hexadecimal");
    return text;
  }

  Result<bool> boolean(std::string_view key) const {
    ASSIGN_OR_RETURN(const Json* value, get(key));
    if (!value->is_boolean()) return bad(key, "is not true or false");
    return value->get<bool>();
  }

  Result<int64_t> integer(std::string_view key, int64_t low, int64_t high) const {
    ASSIGN_OR_RETURN(const Json* value, get(key));
    return as_integer(*value, key, low, high);
  }

  Result<std::vector<int64_t>> integers(std::string_view key, int64_t low, int64_t high) const {
    ASSIGN_OR_RETURN(const Json* value, get(key));
    if (!value->is_array()) return bad(key, "is not a list");
    std::vector<int64_t> out;
    for (const Json& item : *value) {
      ASSIGN_OR_RETURN(const int64_t number, as_integer(item, key, low, high));
      out.push_back(number);
    }
    return out;
  }

  Result<JsonFields> object(std::string_view key) const {
    ASSIGN_OR_RETURN(const Json* value, get(key));
    if (!value->is_object()) return bad(key, "is not an object");
    return JsonFields(*value, fmt::format("{}: {}", where_, key));
  }

  Result<const Json*> array(std::string_view key) const {
    ASSIGN_OR_RETURN(const Json* value, get(key));
    if (!value->is_array()) return bad(key, "is not a list");
    return value;
  }

 private:
  Result<int64_t> as_integer(const Json& value, std::string_view key, int64_t low, int64_t high) const {
    const bool fits =
        value.is_number_integer() &&
        (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
    if (!fits || value.get<int64_t>() < low || value.get<int64_t>() > high) {
      return bad(key, fmt::format("is not an integer in {}..{}", low, high));
    }
    return value.get<int64_t>();
  }

  const Json& object_;
  std::string where_;
};

// Parses JSON. ErrorCode::kCorrupt, naming the file, when it is not valid, or when an object has a key twice:
// programs differ in which of the two values they take.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& path);

}  // namespace ostro::io
