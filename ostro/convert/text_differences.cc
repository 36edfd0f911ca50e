#include "ostro/convert/text_differences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace ostro::convert {
namespace {

using Json = nlohmann::json;

constexpr size_t kShown = 3;

std::string value_text(const Json* value) {
  constexpr size_t kLongest = 80;
  if (value == nullptr) return "absent";
  if (value->is_object()) return fmt::format("an object of {} members", value->size());
  if (value->is_array()) return fmt::format("a list of {} items", value->size());
  std::string text = value->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

struct Places {
  std::vector<std::string> texts;
  size_t more = 0;

  void add(const std::string& path, const Json* written, const Json* there) {
    if (texts.size() == kShown)
      ++more;
    else
      texts.push_back(fmt::format("\"{}\" is {}, not {}", path, value_text(there), value_text(written)));
  }
};

void compare(const std::string& path, const Json& written, const Json& there, Places& out) {
  if (written == there) return;
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (written.is_object() && there.is_object()) {
    for (const auto& [key, value] : written.items())
      if (!there.contains(key))
        out.add(below(key), &value, nullptr);
      else
        compare(below(key), value, there[key], out);
    for (const auto& [key, value] : there.items())
      if (!written.contains(key)) out.add(below(key), nullptr, &value);
    return;
  }
  if (written.is_array() && there.is_array()) {
    const size_t n = std::max(written.size(), there.size());
    for (size_t i = 0; i < n; ++i) {
      const std::string place = fmt::format("{}[{}]", path, i);
      if (i >= written.size() || i >= there.size())
        out.add(place, i < written.size() ? &written[i] : nullptr, i < there.size() ? &there[i] : nullptr);
      else
        compare(place, written[i], there[i], out);
    }
    return;
  }
  out.add(path, &written, &there);
}

std::string line_difference(std::string_view written, std::string_view there) {
  const auto [a, b] = std::mismatch(written.begin(), written.end(), there.begin(), there.end());
  const auto at = static_cast<size_t>(a - written.begin());
  const auto line = 1 + std::count(written.begin(), a, '\n');
  return fmt::format("differs at byte {}, in line {}: {} bytes, not {}", at, line, there.size(),
                     written.size());
}

}  // namespace

std::string text_difference(const std::string& name, std::string_view written, std::string_view there) {
  if (!name.ends_with(".json")) return line_difference(written, there);
  const Json a = Json::parse(written, nullptr, /*allow_exceptions=*/false),
             b = Json::parse(there, nullptr, /*allow_exceptions=*/false);
  if (a.is_discarded()) return line_difference(written, there);
  if (b.is_discarded()) return "is no JSON";
  Places places;
  compare("", a, b, places);
  if (places.texts.empty()) return "says the same in another text; " + line_difference(written, there);
  return fmt::format("{}{}", fmt::join(places.texts, "; "),
                     places.more == 0 ? "" : fmt::format("; and {} more", places.more));
}

}  // namespace ostro::convert
