#include "ostro/io/json/json_fields.h"

#include <unordered_set>

namespace ostro::io {

Result<nlohmann::json> parse_json(std::string_view text, const std::string& path) {
  using Json = nlohmann::json;
  std::vector<std::unordered_set<std::string>> open;  // the keys of the objects that have not ended
  std::string twice;
  const auto see = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && twice.empty() &&
        !open.back().insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  Json value = Json::parse(text, see, /*allow_exceptions=*/false);
  if (value.is_discarded()) return corrupt(fmt::format("{}: not valid JSON", path));
  if (!twice.empty()) return corrupt(fmt::format("{}: \"{}\" is there twice in one object", path, twice));
  return value;
}

}  // namespace ostro::io
