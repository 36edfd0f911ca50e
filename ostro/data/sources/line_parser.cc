// Reads a field of a JSON line with a fast parser. When the fast parser refuses a line, the parser that reads
// all our other JSON decides, and its error message is used.
#include "ostro/data/sources/line_parser.h"

#include <fmt/core.h>
#include <simdjson.h>

#include <nlohmann/json.hpp>

#include "ostro/data/sources/row_values.h"
#include "ostro/io/json/json_words.h"

namespace ostro::data {

struct LineParser::State {
  simdjson::dom::parser parser;
};

LineParser::LineParser() : state_(std::make_unique<State>()) {}
LineParser::~LineParser() = default;

namespace {

static_assert(kLinePadding >= simdjson::SIMDJSON_PADDING);
constexpr size_t kLongLine = 1 << 20;

// The string in the field, if the line is an object with a string there. If the field occurs several times,
// the last one counts. The text lives in the parser.
std::optional<std::string_view> fast_text(simdjson::dom::parser& parser, const std::string& line,
                                          std::string_view key) {
  simdjson::dom::object object;
  if (parser.parse(line).get(object) != simdjson::SUCCESS) return std::nullopt;
  std::optional<simdjson::dom::element> found;
  for (const auto& field : object)
    if (field.key == key) found = field.value;
  std::string_view text;
  if (!found || found->get(text) != simdjson::SUCCESS) return std::nullopt;
  return text;
}

Result<std::string> slow_text(std::string_view line, std::string_view key, std::string_view option) {
  try {
    nlohmann::json object = nlohmann::json::parse(line);
    if (!object.is_object()) return invalid_argument("not a JSON object");
    const auto found = object.find(key);
    if (found == object.end())
      return invalid_argument(
          fmt::format("has no field \"{}\"; set {} to the field that holds the text", key, option));
    if (!found->is_string()) return invalid_argument(fmt::format("field \"{}\" is not a string", key));
    return std::move(found->get_ref<std::string&>());
  } catch (const nlohmann::json::parse_error& e) {
    return invalid_argument(
        fmt::format("not valid JSON (near byte {} of the line){}", e.byte, io::json_trouble(line)));
  } catch (const nlohmann::json::exception&) {
    return invalid_argument("not valid JSON (a number is out of range)");
  }
}

}  // namespace

Result<std::string> LineParser::text(std::string line, std::string_view text_key, std::string_view option) {
  const std::optional<std::string_view> text = fast_text(state_->parser, line, text_key);
  if (!text) return slow_text(line, text_key, option);
  line.assign(*text);  // never longer
  // The parser's memory grows with the longest line, so it is freed after a long one.
  if (line.capacity() > kLongLine) state_ = std::make_unique<State>();
  return line;
}

Result<std::string> text_of_row(Row row, LineParser& parser, std::string_view text_key,
                                std::string_view option, bool& repaired) {
  if (!row.problem.empty()) return unsupported(row.problem);
  std::string text = as_utf8(std::move(row.bytes), repaired);
  if (row.is_text) return text;
  return parser.text(std::move(text), text_key, option);
}

}  // namespace ostro::data
