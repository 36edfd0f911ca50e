#include "ostro/chat/value/value.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ostro/chat/value/mapping.h"
#include "ostro/chat/value/text.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::chat::jinja {
namespace {

constexpr int kMaxValueDepth = 200;  // of values inside values

[[noreturn]] void too_deep() {
  throw TemplateError(fmt::format("values nested more than {} deep", kMaxValueDepth));
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b, int depth);

bool equal_at(const Value& a, const Value& b, int depth) {
  if (depth > kMaxValueDepth) too_deep();
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return a.as_double() == b.as_double();
    return a.as_int() == b.as_int();
  }
  if (a.is_text() && b.is_text()) return a.as_text() == b.as_text();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.is_sequence() && b.is_sequence())
    return a.as_sequence().kind == b.as_sequence().kind &&
           equal_items(a.as_sequence().items, b.as_sequence().items, depth + 1);
  if (a.is_mapping() && b.is_mapping()) {
    if (a.as_mapping().size() != b.as_mapping().size()) return false;
    for (const auto& [key, value] : a.as_mapping().items()) {
      const Value* other = b.as_mapping().find(key);
      if (other == nullptr || !equal_at(value, *other, depth + 1)) return false;
    }
    return true;
  }
  return a.same_object(b);
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b, int depth) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [depth](const Value& x, const Value& y) { return equal_at(x, y, depth); });
}

std::string joined(const std::vector<Value>& items, int depth);

std::string repr_at(const Value& value, int depth) {
  if (depth > kMaxValueDepth) too_deep();
  if (value.is_text())
    return value.is_markup() ? "Markup(" + repr_of_text(value.as_text()) + ")"
                             : repr_of_text(value.as_text());
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "None";
  if (value.is_bool()) return value.as_bool() ? "True" : "False";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_float()) return repr_of_double(value.as_double());
  if (value.is_mapping()) {
    std::string out = "{";
    for (const auto& [key, item] : value.as_mapping().items()) {
      if (out.size() > 1) out += ", ";
      out += repr_at(key, depth + 1) + ": " + repr_at(item, depth + 1);
    }
    return out + "}";
  }
  if (value.is_sequence()) {
    const Sequence& s = value.as_sequence();
    const std::string inside = joined(s.items, depth + 1);
    switch (s.kind) {
      case SequenceKind::kList: return "[" + inside + "]";
      case SequenceKind::kTuple: return "(" + inside + (s.items.size() == 1 ? ",)" : ")");
      case SequenceKind::kKeys: return "dict_keys([" + inside + "])";
      case SequenceKind::kValues: return "dict_values([" + inside + "])";
      case SequenceKind::kItems: return "dict_items([" + inside + "])";
      case SequenceKind::kRange: break;
    }
  }
  // Python would print an address, or the arguments of the range.
  throw TemplateError(
      fmt::format("a {} cannot be printed; use the filter list or loop over it", value.type_name()));
}

std::string joined(const std::vector<Value>& items, int depth) {
  std::string out;
  for (const Value& item : items) {
    if (!out.empty()) out += ", ";
    out += repr_at(item, depth);
  }
  return out;
}

}  // namespace

Value Value::undefined(std::string message) {
  Value out;
  out.v_ = std::make_shared<const Undefined>(Undefined{std::move(message)});
  return out;
}

Value Value::markup(std::string bytes) {
  Value out;
  out.v_ = std::make_shared<const Text>(Text{std::move(bytes), true});
  return out;
}

Value Value::sequence(SequenceKind kind, std::vector<Value> items) {
  Value out;
  out.v_ = std::make_shared<const Sequence>(Sequence{kind, std::move(items)});
  return out;
}

Value Value::generator(std::vector<Value> items) {
  return Value(std::make_shared<Generator>(Generator{std::move(items), 0}));
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return is_float() ? as_double() != 0 : as_int() != 0;
  if (is_text()) return !as_text().empty();
  if (is_sequence()) return !as_sequence().items.empty();
  if (is_mapping()) return as_mapping().size() > 0;
  return true;
}

const char* Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_int()) return "int";
  if (is_float()) return "float";
  if (is_text()) return is_markup() ? "Markup" : "str";
  if (is_mapping()) return "dict";
  if (is_generator()) return "generator";
  if (is_namespace()) return "Namespace";
  if (is_loop()) return "LoopContext";
  if (is_callable()) return "function";
  switch (as_sequence().kind) {
    case SequenceKind::kList: return "list";
    case SequenceKind::kTuple: return "tuple";
    case SequenceKind::kRange: return "range";
    case SequenceKind::kKeys: return "dict_keys";
    case SequenceKind::kValues: return "dict_values";
    case SequenceKind::kItems: return "dict_items";
  }
  return "";
}

bool Value::same_object(const Value& other) const { return v_ == other.v_; }

bool equal(const Value& a, const Value& b) { return equal_at(a, b, 0); }

bool less(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return a.as_double() < b.as_double();
    return a.as_int() < b.as_int();
  }
  if (a.is_text() && b.is_text()) return a.as_text() < b.as_text();  // UTF-8 sorts as code points do
  if (a.is_sequence() && b.is_sequence() && a.as_sequence().kind == b.as_sequence().kind &&
      (a.is_sequence(SequenceKind::kList) || a.is_sequence(SequenceKind::kTuple)))
    return std::lexicographical_compare(a.as_sequence().items.begin(), a.as_sequence().items.end(),
                                        b.as_sequence().items.begin(), b.as_sequence().items.end(), less);
  for (const Value* v : {&a, &b})
    if (v->is_undefined()) throw TemplateError(v->undefined_message());
  throw TemplateError(
      fmt::format("'<' not supported between instances of '{}' and '{}'", a.type_name(), b.type_name()));
}

std::string to_text(const Value& value) {
  if (value.is_text()) return value.as_text();
  if (value.is_undefined()) return {};
  return repr_at(value, 0);
}

std::string to_repr(const Value& value) { return repr_at(value, 0); }

std::string repr_of_text(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const tokenizer::CodePoint c = tokenizer::read_code_point(text.data() + i);
    if (c.value == static_cast<uint32_t>(quote) || c.value == '\\')
      (out += '\\') += static_cast<char>(c.value);
    else if (c.value == '\n')
      out += "\\n";
    else if (c.value == '\r')
      out += "\\r";
    else if (c.value == '\t')
      out += "\\t";
    else if (is_printable(c.value))
      out.append(text.substr(i, c.length));
    else if (c.value < 0x100)
      out += fmt::format("\\x{:02x}", c.value);
    else
      out += c.value < 0x10000 ? fmt::format("\\u{:04x}", c.value) : fmt::format("\\U{:08x}", c.value);
    i += c.length;
  }
  return out += quote;
}

// The shortest decimal that reads back as the value, as Python writes it: with an exponent below 1e-4 and
// from 1e16 on.
std::string repr_of_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<size_t>(end - buffer));  // -1.25e+02
  const size_t e = shortest.find('e');
  int exponent = 0;
  const char* digits = shortest.data() + e + (shortest[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits, end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  std::string out(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr);
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

}  // namespace ostro::chat::jinja
