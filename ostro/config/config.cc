#include "ostro/config/config.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

namespace ostro::config {
namespace {

std::string head(const std::string& path) { return path.substr(0, path.find('.')); }

// The choices (`type:` values) under which an option exists; "" if it always exists.
std::string condition(const OptionInfo& option, const char* format_before) {
  std::string text;
  for (const auto& [path, value] : option.selects)
    text += fmt::format("{}{} is {}", text.empty() ? format_before : ", ", path, value);
  return text;
}

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

// Choices of a section may declare the same option: one row, with the names of all these choices.
std::vector<OptionInfo> one_row_each(const std::vector<OptionInfo>& options) {
  std::vector<OptionInfo> rows;
  std::vector<size_t> choices;          // of the last `selects` of each row
  std::map<std::string, size_t> types;  // key of a type -> number of choices
  for (const OptionInfo& option : options) {
    if (option.path.ends_with(".type"))
      types[option.path] = static_cast<size_t>(std::count(option.type.begin(), option.type.end(), '|')) + 1;
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const OptionInfo& row) {
      const auto words = [](const OptionInfo& o) {
        return std::tie(o.path, o.type, o.default_value, o.unit, o.help, o.effect, o.fixed);
      };
      return words(row) == words(option) && !row.selects.empty() &&
             row.selects.size() == option.selects.size() &&
             std::equal(row.selects.begin(), row.selects.end() - 1, option.selects.begin()) &&
             row.selects.back().first == option.selects.back().first;
    });
    if (same == rows.end()) {
      rows.push_back(option);
      choices.push_back(1);
    } else {
      same->selects.back().second += ", " + option.selects.back().second;
      ++choices[static_cast<size_t>(same - rows.begin())];
    }
  }
  for (size_t i = 0; i < rows.size(); ++i)
    if (choices[i] > 1 && choices[i] == types[rows[i].selects.back().first]) rows[i].selects.pop_back();
  return rows;
}

}  // namespace

Result<Node> load_tree(const std::string& path, std::span<const Override> overrides) {
  Node tree = Node::map();
  if (!path.empty()) {
    ASSIGN_OR_RETURN(tree, read_yaml_file(path));
  }
  for (const Override& override : overrides) RETURN_IF_ERROR(apply_override(override, &tree));
  return tree;
}

std::string options_help(const std::vector<OptionInfo>& options) {
  std::string out, section;
  for (const OptionInfo& option : one_row_each(options)) {
    if (head(option.path) != section) {
      section = head(option.path);
      out += "\n" + section + ":\n";
    }
    std::string help = option.help;
    if (!option.unit.empty()) help += " [" + option.unit + "]";
    out += fmt::format("  --{} ({}, default {}; {})\n      {}{}\n", option.path, option.type,
                       option.default_value, effect_name(option.effect), help, condition(option, "; when "));
  }
  return out;
}

std::string options_markdown(const std::vector<OptionInfo>& options) {
  std::string out, section;
  for (const OptionInfo& option : one_row_each(options)) {
    if (head(option.path) != section) {
      section = head(option.path);
      out += fmt::format(
          "\n## `{}`\n\n| key | type | default | unit | effect | meaning |\n|---|---|---|---|---|---|\n",
          section);
    }
    out += fmt::format("| `{}` | {} | `{}` | {} | {}{} | {}{} |\n", option.path, cell(option.type),
                       cell(option.default_value), option.unit, effect_name(option.effect),
                       option.by_content      ? " (by content)"
                       : option.fixed.empty() ? ""
                                              : " (fixed)",
                       cell(option.help), condition(option, "; only when "));
  }
  return out;
}

}  // namespace ostro::config
