#include "ostro/config/config.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

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

// Merges rows of types of one section that differ in nothing but the type (the first entry of `selects`) into
// one row, at the place of the first: "a, b or c". A row that all types have needs no type. `types` collects,
// by the text of a row without its type, the types that have it; an emptied list marks a row as written.
std::vector<OptionInfo> merged(const std::vector<OptionInfo>& options) {
  const auto text_of = [](const OptionInfo& o) {
    auto rest = o.selects;
    if (!rest.empty()) rest[0].second.clear();
    return std::tuple(o.path, o.type, o.default_value, o.unit, o.help, o.effect, o.by_content,
                      o.fixed.empty(), rest);
  };
  std::map<std::string, size_t> choices;  // how many types a `type` key has
  std::map<decltype(text_of(options[0])), std::vector<std::string>> types;
  for (const OptionInfo& o : options) {
    if (o.path.ends_with(".type"))
      choices[o.path] = 1 + static_cast<size_t>(std::count(o.type.begin(), o.type.end(), '|'));
    if (!o.selects.empty()) types[text_of(o)].push_back(o.selects[0].second);
  }
  std::vector<OptionInfo> out;
  for (const OptionInfo& o : options) {
    const auto found = types.find(text_of(o));
    if (o.selects.empty() || found->second.size() == 1) {
      out.push_back(o);
      continue;
    }
    std::vector<std::string>& names = found->second;
    if (names.empty() || names[0] != o.selects[0].second) continue;  // is in an earlier row
    OptionInfo row = o;
    if (names.size() == choices[o.selects[0].first]) {
      row.selects.erase(row.selects.begin());
    } else {
      const std::string last = names.back();
      names.pop_back();
      row.selects[0].second = fmt::format("{} or {}", fmt::join(names, ", "), last);
    }
    names.clear();
    out.push_back(row);
  }
  return out;
}

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

}  // namespace

// Resolution has three layers: the defaults in the struct of options, the file, the overrides in their order.
// The last two are joined here as trees, before any type is known; read_value() then changes only the fields
// that the tree names.
Result<Node> load_tree(const std::string& path, std::span<const Override> overrides, Mistakes* mistakes,
                       const ReadText& read) {
  Node tree = Node::map();
  if (!path.empty()) {
    ASSIGN_OR_RETURN(tree, read_yaml_file(path, read));
  }
  for (const Override& override : overrides) mistakes->add(apply_override(override, &tree));
  return tree;
}

std::string options_help(const std::vector<OptionInfo>& options) {
  std::string out, section;
  for (const OptionInfo& option : merged(options)) {
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
  for (const OptionInfo& option : merged(options)) {
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
