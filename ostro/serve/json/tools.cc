#include "ostro/serve/json/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"
#include "ostro/serve/json/fields.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kJsonSpace = " \t\r\n";

std::string_view without_space_behind(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kJsonSpace) + 1);
}
std::string_view stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(kJsonSpace);
  return begin == std::string_view::npos ? "" : without_space_behind(text.substr(begin));
}

// Adds the calls of one place. False: it is broken.
bool add_calls(const ToolUse& use, std::string_view text, std::vector<ToolCall>& out) {
  const auto parsed = parse_ordered(text, "a call");
  if (!parsed.ok()) return false;
  const Json& json = *parsed;
  const Json list = json.is_array() ? json : Json::array({json});
  for (const Json& call : list) {
    if (!call.is_object() || call.size() != 2 || !call.contains(use.format.name) ||
        !call.contains(use.format.arguments))
      return false;
    const Json& name = call[use.format.name];
    const Json& arguments = call[use.format.arguments];
    if (!name.is_string() || !arguments.is_object() ||
        std::find(use.names.begin(), use.names.end(), name.get<std::string>()) == use.names.end())
      return false;
    out.push_back({name.get<std::string>(), arguments.dump()});
  }
  return !list.empty();
}

}  // namespace

Result<std::optional<ToolFormat>> load_tool_format(io::FileSystem& fs, const std::string& tokenizer_path) {
  ASSIGN_OR_RETURN(const io::FileInfo info, fs.stat(tokenizer_path));
  const std::string path =
      io::join_path(info.is_directory ? tokenizer_path : io::parent_path(tokenizer_path), kToolFormatFile);
  ASSIGN_OR_RETURN(const bool there, fs.exists(path));
  if (!there) return std::optional<ToolFormat>();
  constexpr int64_t kMostBytes = 64 << 10;
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMostBytes));
  if (const auto parsed = io::parse_json(text, path); !parsed.ok()) return parsed.error();
  const Json json = Json::parse(text);
  ToolFormat out;
  if (!json.is_object()) return corrupt(fmt::format("{}: has to be a JSON object", path));
  for (const auto& [name, value] : json.items()) {
    std::string* const member = name == "begin"       ? &out.begin
                                : name == "end"       ? &out.end
                                : name == "name"      ? &out.name
                                : name == "arguments" ? &out.arguments
                                                      : nullptr;
    if (member == nullptr)
      return corrupt(fmt::format("{}: \"{}\" is none of begin, end, name and arguments", path, name));
    if (!value.is_string()) return corrupt(fmt::format("{}: \"{}\" has to be a string", path, name));
    *member = value.get<std::string>();
  }
  if (out.begin.empty() != out.end.empty())
    return corrupt(fmt::format("{}: \"begin\" and \"end\" are both empty, or both texts", path));
  if (out.name.empty() || out.arguments.empty() || out.name == out.arguments)
    return corrupt(fmt::format("{}: \"name\" and \"arguments\" have to be two names", path));
  return std::optional(out);
}

std::optional<CallsInText> parse_calls(const ToolUse& use, std::string_view text) {
  const ToolFormat& format = use.format;
  CallsInText out;
  if (format.begin.empty()) {
    if (!add_calls(use, stripped(text), out.calls)) return std::nullopt;
    return out;
  }
  size_t at = text.find(format.begin);
  if (at == std::string_view::npos) return std::nullopt;
  out.content = without_space_behind(text.substr(0, at));
  while (at < text.size()) {
    if (!text.substr(at).starts_with(format.begin)) return std::nullopt;
    at += format.begin.size();
    // A token that ends the answer can stand for the last end.
    const size_t end = std::min(text.find(format.end, at), text.size());
    if (!add_calls(use, stripped(text.substr(at, end - at)), out.calls)) return std::nullopt;
    at = std::min(text.find_first_not_of(kJsonSpace, std::min(end + format.end.size(), text.size())),
                  text.size());
  }
  return out;
}

size_t certain_content(const ToolFormat& format, std::string_view text) {
  if (format.begin.empty()) return 0;
  size_t end = text.find(format.begin);
  if (end == std::string_view::npos) {
    end = text.size();
    for (size_t count = std::min(format.begin.size() - 1, text.size()); count > 0; --count)
      if (text.ends_with(std::string_view(format.begin).substr(0, count))) {
        end -= count;
        break;
      }
  }
  return without_space_behind(text.substr(0, end)).size();
}

}  // namespace ostro::serve
