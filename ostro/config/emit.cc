// Writing a tree: YAML for people (and for reading back), canonical JSON for hashing.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ostro/config/node.h"

namespace ostro::config {
namespace {

// Strings that every YAML reader takes as the same string without quotes.
bool is_safe_plain(const std::string& s) {
  if (s.empty() || plain_scalar(s, "").kind != Node::Kind::kString) return false;
  auto alpha = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
  };
  if (!alpha(s[0])) return false;
  for (char c : s)
    if (!alpha(c) && !(c >= '0' && c <= '9') && c != '.' && c != '-') return false;
  // YAML 1.1 readers take these for booleans.
  for (const char* word :
       {"y", "n", "yes", "no", "on", "off", "Y", "N", "Yes", "No", "On", "Off", "YES", "NO", "ON", "OFF"})
    if (s == word) return false;
  return true;
}

// A JSON string is also a YAML double-quoted scalar.
std::string quoted(const std::string& s) {
  return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string string_text(const std::string& s) { return is_safe_plain(s) ? s : quoted(s); }

std::string scalar_text(const Node& node) {
  if (node.kind == Node::Kind::kNull) return "null";
  if (node.kind == Node::Kind::kString) return string_text(node.text);
  return node.text;
}

void append_block(const Node& map, int indent, std::string& out) {
  for (const Node& item : map.items) {
    out += fmt::format("{:{}}{}:", "", indent, string_text(item.key));
    if (item.kind == Node::Kind::kMap && !item.items.empty()) {
      out += "\n";
      append_block(item, indent + 2, out);
    } else {
      out += " " + flow_text(item) + "\n";
    }
  }
}

nlohmann::json to_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull: return nullptr;
    case Node::Kind::kString: return node.text;
    case Node::Kind::kList: {
      auto list = nlohmann::json::array();
      for (const Node& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case Node::Kind::kMap: {
      auto map = nlohmann::json::object();
      for (const Node& item : node.items) map[item.key] = to_json(item);
      return map;
    }
    default: return nlohmann::json::parse(node.text);  // the text of a typed bool, int or double is JSON
  }
}

}  // namespace

std::string flow_text(const Node& node) {
  if (node.is_scalar()) return scalar_text(node);
  const bool is_map = node.kind == Node::Kind::kMap;
  std::string out;
  for (const Node& item : node.items) {
    if (!out.empty()) out += ", ";
    if (is_map) out += string_text(item.key) + ": ";
    out += flow_text(item);
  }
  return is_map ? "{" + out + "}" : "[" + out + "]";
}

std::string block_text(const Node& map) {
  std::string out;
  append_block(map, 0, out);
  return out;
}

std::string canonical_json(const Node& node) {
  return to_json(node).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ostro::config
