// Node: an untyped configuration tree: the content of a YAML file, with the place of every value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::config {

// One node of a tree. A value type; copies are deep.
struct Node {
  enum class Kind { kNull, kBool, kInt, kDouble, kString, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text;   // scalars: the text in the file, or the shortest text that reads back as the same value
  std::string key;    // key of this entry, if the parent is a map
  std::string where;  // "file.yaml:12" or "--a.b.c"; empty if the tree was not read
  std::vector<Node> items;  // elements of a list, or entries of a map in the order written

  bool is_scalar() const { return kind != Kind::kList && kind != Kind::kMap; }
  // The entry with this key, or nullptr.
  const Node* find(std::string_view name) const;
  Node* find(std::string_view name);

  static Node null() { return {}; }
  static Node boolean(bool value);
  static Node integer(int64_t value);
  static Node number(double value);
  static Node string(std::string value);
  static Node list(std::vector<Node> items);
  static Node map();
  // Adds an entry to a map; returns it.
  Node& put(std::string name, Node value);
};

// "null", "an integer", "a list", ...: for messages.
const char* kind_name(Node::Kind kind);

// An unquoted scalar. Its kind follows YAML's core schema: 1e-5 is a number, 12 an integer, yes a string.
Node plain_scalar(std::string text, std::string where);

// The shortest decimal text that reads back as the same double. It always has a fraction or an exponent
// ("1.0", "6e-4"), so it is recognised as a number. The value must be finite.
std::string format_double(double value);

// One line of YAML flow text ("[1, 2]", "{every: 1000}"). parse_yaml reads it back equal.
std::string flow_text(const Node& node);

// A map as block YAML, indented by two spaces. parse_yaml reads it back equal.
std::string block_text(const Node& map);

// JSON with sorted keys and no white space. Numbers have the shortest text that reads back equal.
std::string canonical_json(const Node& node);

}  // namespace ostro::config
