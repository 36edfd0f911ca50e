#include "ostro/serve/json/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ostro/config/options.h"
#include "ostro/config/utf8.h"
#include "ostro/io/json/json_fields.h"
#include "ostro/io/json/json_words.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostMembers = 1024;  // of an object

bool has_large_object(const nlohmann::json& value) {
  if (value.is_object() && value.size() > kMostMembers) return true;
  return value.is_structured() && std::any_of(value.begin(), value.end(), has_large_object);
}

// Whether a JSON number is an integer that fits; then it is in `out`.
bool is_integer(const Json& value, int64_t& out) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return false;
  out = value.get<int64_t>();
  return true;
}

}  // namespace

std::string shown(const Json& value) {
  constexpr size_t kMost = 40;
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  const std::string text = value.dump(-1, ' ', true);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

Fields::Fields(const Json& object, std::string inside) : object_(object), inside_(std::move(inside)) {}

std::string Fields::full(const std::string& name) const {
  return inside_.empty() ? name : inside_ + "." + name;
}

const Json* Fields::find(const std::string& name) {
  known_.push_back(name);
  if (failed()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Fields::fail_as(ApiError error) {
  if (!failed()) error_ = std::move(error);
}

void Fields::fail(const std::string& name, const std::string& message) {
  fail_as({kBadRequest, fmt::format("\"{}\" {}", full(name), message), full(name)});
}

void Fields::text(const std::string& name, std::string& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_string()) return fail(name, fmt::format("is {}; it has to be a string", shown(*value)));
  out = value->get<std::string>();
}

void Fields::flag(const std::string& name, bool& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) return fail(name, fmt::format("is {}; use true or false", shown(*value)));
  out = value->get<bool>();
}

void Fields::number(const std::string& name, double& out, double low, double high) {
  const Json* value = find(name);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= low && number <= high))
    return fail(name, fmt::format("is {}; use a number from {} to {}", shown(*value), low, high));
  out = number + 0.0;  // -0 becomes +0
}

void Fields::integer(const std::string& name, int64_t& out, int64_t low, int64_t high) {
  const Json* value = find(name);
  if (value == nullptr) return;
  int64_t number = 0;
  if (!is_integer(*value, number) || number < low || number > high)
    return fail(name, fmt::format("is {}; use an integer from {} to {}", shown(*value), low, high));
  out = number;
}

void Fields::texts(const std::string& name, std::vector<std::string>& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  const Json list = value->is_array() ? *value : Json::array({*value});
  for (const Json& item : list) {
    if (!item.is_string())
      return fail(name, fmt::format("holds {}; it has to be a string or a list of strings", shown(item)));
    out.push_back(item.get<std::string>());
  }
}

std::optional<ApiError> Fields::finish() {
  if (failed()) return error_;
  for (const auto& [name, value] : object_.items())
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
      const std::string nearest = config::nearest_name(name, known_);
      fail(name, nearest.empty()
                     ? "is no field of this request"
                     : fmt::format("is no field of this request; the nearest is \"{}\"", full(nearest)));
      break;
    }
  return error_;
}

Result<Json> parse_ordered(std::string_view text, const std::string& name) {
  ASSIGN_OR_RETURN(const nlohmann::json checked, io::parse_json(text, name));
  if (has_large_object(checked))
    return invalid_argument(
        fmt::format("{} has an object with more than {} members, which is the most", name, kMostMembers));
  return Json::parse(text);
}

std::optional<ApiError> parse_body(std::string_view body, Json& out) {
  if (!config::is_utf8(body)) return ApiError{kBadRequest, "the body is not UTF-8"};
  auto parsed = parse_ordered(body, "the body");
  if (!parsed.ok()) return ApiError{kBadRequest, parsed.error().message() + io::json_trouble(body)};
  out = std::move(*parsed);
  if (!out.is_object())
    return ApiError{kBadRequest, fmt::format("the body is {}; it has to be a JSON object", shown(out))};
  return std::nullopt;
}

std::vector<int32_t> ids_of(Fields& fields, const std::string& name, const Json& list, int64_t tokens) {
  std::vector<int32_t> out;
  for (const Json& item : list) {
    int64_t id = -1;
    if (!is_integer(item, id) || id < 0 || id >= tokens) {
      fields.fail(name, fmt::format("holds {} at place {}; token ids of this model are 0 to {}", shown(item),
                                    out.size(), tokens - 1));
      return {};
    }
    out.push_back(static_cast<int32_t>(id));
  }
  return out;
}

}  // namespace ostro::serve
