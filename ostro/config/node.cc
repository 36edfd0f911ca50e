#include "ostro/config/node.h"

#include <charconv>
#include <cmath>

namespace ostro::config {
namespace {

bool is_digits(std::string_view s) {
  if (s.empty()) return false;
  for (char c : s)
    if (c < '0' || c > '9') return false;
  return true;
}

std::string_view without_sign(std::string_view s) {
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) s.remove_prefix(1);
  return s;
}

bool is_integer(std::string_view s) { return is_digits(without_sign(s)); }

// [-+]? ( digits [. digits?] | . digits ) ( [eE] [-+]? digits )?
bool is_number(std::string_view s) {
  s = without_sign(s);
  const size_t e = s.find_first_of("eE");
  if (e != std::string_view::npos) {
    if (!is_digits(without_sign(s.substr(e + 1)))) return false;
    s = s.substr(0, e);
  }
  const size_t dot = s.find('.');
  if (dot == std::string_view::npos) return is_digits(s);
  const std::string_view whole = s.substr(0, dot), fraction = s.substr(dot + 1);
  return (whole.empty() || is_digits(whole)) && (fraction.empty() || is_digits(fraction)) &&
         !(whole.empty() && fraction.empty());
}

}  // namespace

const Node* Node::find(std::string_view name) const {
  if (kind != Kind::kMap) return nullptr;
  for (const Node& item : items)
    if (item.key == name) return &item;
  return nullptr;
}

Node* Node::find(std::string_view name) {
  return const_cast<Node*>(static_cast<const Node*>(this)->find(name));
}

Node Node::boolean(bool value) {
  Node n;
  n.kind = Kind::kBool;
  n.text = value ? "true" : "false";
  return n;
}

Node Node::integer(int64_t value) {
  Node n;
  n.kind = Kind::kInt;
  n.text = std::to_string(value);
  return n;
}

Node Node::number(double value) {
  Node n;
  n.kind = Kind::kDouble;
  n.text = format_double(value);
  return n;
}

Node Node::string(std::string value) {
  Node n;
  n.kind = Kind::kString;
  n.text = std::move(value);
  return n;
}

Node Node::list(std::vector<Node> items) {
  Node n;
  n.kind = Kind::kList;
  n.items = std::move(items);
  return n;
}

Node Node::map() {
  Node n;
  n.kind = Kind::kMap;
  return n;
}

Node& Node::put(std::string name, Node value) {
  OSTRO_CHECK(kind == Kind::kMap, "put(\"{}\") into {}", name, kind_name(kind));
  value.key = std::move(name);
  items.push_back(std::move(value));
  return items.back();
}

const char* kind_name(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kNull: return "null";
    case Node::Kind::kBool: return "true or false";
    case Node::Kind::kInt: return "an integer";
    case Node::Kind::kDouble: return "a number";
    case Node::Kind::kString: return "a string";
    case Node::Kind::kList: return "a list";
    case Node::Kind::kMap: return "a section";
  }
  return "?";
}

Node plain_scalar(std::string text, std::string where) {
  Node n;
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    n.kind = Node::Kind::kNull;
  } else if (text == "true" || text == "True" || text == "TRUE" || text == "false" || text == "False" ||
             text == "FALSE") {
    n.kind = Node::Kind::kBool;
  } else if (is_integer(text)) {
    n.kind = Node::Kind::kInt;
  } else if (is_number(text)) {
    n.kind = Node::Kind::kDouble;
  } else {
    n.kind = Node::Kind::kString;
  }
  n.text = std::move(text);
  n.where = std::move(where);
  return n;
}

std::string format_double(double value) {
  OSTRO_CHECK(std::isfinite(value), "a configuration holds no infinity or NaN");
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace ostro::config
