#include "ostro/chain/canonical.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace ostro::chain {
namespace {

using Json = nlohmann::json;

void floats_to_strings(Json& value) {
  if (value.is_number_float()) {
    value = hex_float(value.get<double>());
  } else if (value.is_structured()) {
    for (Json& item : value) floats_to_strings(item);
  }
}

void strings_to_floats(Json& value) {
  if (value.is_structured()) {
    for (Json& item : value) strings_to_floats(item);
  } else if (value.is_string()) {
    if (const auto number = parse_hex_float(value.get<std::string>()); number.ok()) value = *number;
  }
}

Json with_floats(const std::string& canonical) {
  Json value = Json::parse(canonical);
  strings_to_floats(value);
  return value;
}

std::string to_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

void compare(std::vector<std::string>& keys, const Json& there, const Json& here,
             std::vector<ObjectDifference>& out) {
  if (there == here) return;
  if (!there.is_object() || !here.is_object()) {
    out.push_back({keys, there.dump(), here.dump()});
    return;
  }
  for (const auto& [key, value] : there.items()) {
    keys.push_back(key);
    if (here.contains(key))
      compare(keys, value, here[key], out);
    else
      out.push_back({keys, value.dump(), ""});
    keys.pop_back();
  }
  for (const auto& [key, value] : here.items()) {
    if (there.contains(key)) continue;
    out.push_back({keys, "", value.dump()});
    out.back().keys.push_back(key);
  }
}

void list_values(const std::string& path, const Json& value,
                 std::vector<std::pair<std::string, std::string>>& out) {
  if (!value.is_object() || (value.empty() && !path.empty())) {
    out.emplace_back(path, readable_value(value.dump()));
    return;
  }
  for (const auto& [key, item] : value.items()) list_values(path.empty() ? key : path + "." + key, item, out);
}

}  // namespace

std::string ObjectDifference::path() const { return fmt::format("{}", fmt::join(keys, ".")); }

std::optional<std::vector<ObjectDifference>> find_differences(std::string_view there, std::string_view here) {
  const Json a = Json::parse(there, nullptr, false), b = Json::parse(here, nullptr, false);
  if (a.is_discarded() || b.is_discarded()) return std::nullopt;
  std::vector<std::string> keys;
  std::vector<ObjectDifference> out;
  compare(keys, a, b, out);
  return out;
}

std::vector<std::pair<std::string, std::string>> values_by_path(std::string_view json) {
  std::vector<std::pair<std::string, std::string>> out;
  const Json whole = Json::parse(json, nullptr, false);
  if (whole.is_object()) list_values("", whole, out);
  return out;
}

std::string decimal_json(const std::string& canonical) { return to_text(with_floats(canonical)); }

std::string readable_value(const std::string& canonical) {
  if (canonical.empty()) return "absent";
  const Json value = with_floats(canonical);
  return value.is_string() ? value.get<std::string>() : to_text(value);
}

std::vector<std::string> object_differences(std::string_view there, std::string_view here) {
  const auto found = find_differences(there, here);
  if (!found) return {"not JSON"};
  std::vector<std::string> out;
  for (const ObjectDifference& d : *found) {
    out.push_back(
        fmt::format("{} is {} there and {} here", d.path(), readable_value(d.there), readable_value(d.here)));
  }
  return out;
}

std::string hex_float(double value) {
  if (std::isnan(value)) return "nan";
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return sign + "inf";
  if (value == 0) return sign + "0x0p+0";
  constexpr uint64_t kFraction = (uint64_t{1} << 52) - 1;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const int biased = static_cast<int>((bits >> 52) & 0x7ff);
  std::string digits = fmt::format("{:013x}", bits & kFraction);
  digits.resize(digits.find_last_not_of('0') + 1);  // npos + 1 is 0
  const int exponent = biased == 0 ? -1022 : biased - 1023;
  return fmt::format("{}0x{}{}{}p{:+}", sign, biased == 0 ? 0 : 1, digits.empty() ? "" : ".", digits,
                     exponent);
}

Result<double> parse_hex_float(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string_view digits = text.substr(negative ? 1 : 0);
  double value = 0;
  if (digits.starts_with("0x")) {
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data() + 2, end, value, std::chars_format::hex);
    if (parsed.ec == std::errc() && parsed.ptr == end) {
      if (negative) value = -value;
      if (hex_float(value) == text) return value;
    }
  }
  return invalid_argument(fmt::format("\"{}\" is not a hex float like \"0x1.8p+1\"", text));
}

Result<std::string> canonical_object(std::string_view json) {
  Json value = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) return invalid_argument(fmt::format("not a JSON object: {:.80}", json));
  floats_to_strings(value);
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status check_run_hash(const std::string& run_hash) {
  constexpr size_t kDigits = 64;
  if (run_hash.empty() || is_lower_hex(run_hash, kDigits)) return {};
  return invalid_argument(
      fmt::format("--run_hash {}: use the {} digits (0-9, a-f) that ostro hash prints", run_hash, kDigits));
}

bool is_lower_hex(std::string_view text, size_t digits) {
  return !text.empty() && (digits == 0 || text.size() == digits) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace ostro::chain
