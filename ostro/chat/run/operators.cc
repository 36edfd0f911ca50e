// Operators, subscripts and attributes, as in Python.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ostro/chat/run/interpreter.h"
#include "ostro/chat/run/loop.h"
#include "ostro/chat/value/text.h"

namespace ostro::chat::jinja {
namespace {

[[noreturn]] void wrong_types(const std::string& op, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b})
    if (v->is_undefined()) throw TemplateError(v->undefined_message());
  throw TemplateError(
      fmt::format("unsupported operand types for {}: '{}' and '{}'", op, a.type_name(), b.type_name()));
}

[[noreturn]] void overflow(const std::string& op) {
  throw TemplateError(fmt::format("the result of {} does not fit 64 bits", op));
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }

double floor_mod(double a, double b) {
  const double m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

Value integers(const std::string& op, int64_t a, int64_t b) {
  int64_t out = 0;
  if (op == "+"   ? __builtin_add_overflow(a, b, &out)
      : op == "-" ? __builtin_sub_overflow(a, b, &out)
                  : op == "*" && __builtin_mul_overflow(a, b, &out))
    overflow(op);
  if (op == "+" || op == "-" || op == "*") return Value(out);
  if (op == "**") {
    if (b < 0) return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
    out = 1;
    if (a == 0 || a == 1 || b == 0) return Value(b == 0 ? int64_t{1} : a);
    if (a == -1) return Value(b % 2 == 0 ? int64_t{1} : int64_t{-1});
    for (int64_t i = 0; i < b; ++i)
      if (__builtin_mul_overflow(out, a, &out)) overflow(op);
    return Value(out);
  }
  if (b == 0) throw TemplateError("division by zero");
  if (op == "/") return Value(static_cast<double>(a) / static_cast<double>(b));
  if (a == std::numeric_limits<int64_t>::min() && b == -1) overflow(op);
  return op == "//" ? Value(floor_div(a, b)) : Value(a - floor_div(a, b) * b);
}

Value reals(const std::string& op, double a, double b) {
  if (op == "+") return Value(a + b);
  if (op == "-") return Value(a - b);
  if (op == "*") return Value(a * b);
  if (op == "**") return Value(std::pow(a, b));
  if (b == 0) throw TemplateError("division by zero");
  if (op == "/") return Value(a / b);
  return op == "//" ? Value(std::floor((a - floor_mod(a, b)) / b + 0.5)) : Value(floor_mod(a, b));
}

Value repeated(Interpreter& in, const Value& what, int64_t times) {
  const auto n = static_cast<size_t>(std::max<int64_t>(times, 0));
  if (what.is_text()) {
    const std::string& unit = what.as_text();
    if (!unit.empty() && n > in.options().max_bytes / unit.size()) in.charge(in.options().max_bytes + 1);
    std::string out;
    for (size_t i = 0; i < n && !unit.empty(); ++i) out += unit;
    return in.text(std::move(out));
  }
  const Sequence& unit = what.as_sequence();
  if (!unit.items.empty() && n > in.options().max_bytes / sizeof(Value) / unit.items.size())
    in.charge(in.options().max_bytes + 1);
  std::vector<Value> out;
  for (size_t i = 0; i < n && !unit.items.empty(); ++i)
    out.insert(out.end(), unit.items.begin(), unit.items.end());
  in.charge(out.size() * sizeof(Value));
  return Value::sequence(unit.kind, std::move(out));
}

bool is_list_or_tuple(const Value& v) {
  return v.is_sequence(SequenceKind::kList) || v.is_sequence(SequenceKind::kTuple);
}

Value added_texts(Interpreter& in, const Value& a, const Value& b) {
  if (a.is_markup() != b.is_markup()) {
    const std::string& plain = a.is_markup() ? b.as_text() : a.as_text();
    if (plain.find_first_of("&<>\"'") != std::string::npos)
      throw TemplateError(
          "text + text | safe: jinja2 would replace the signs & < > \" ' in the other text; drop `safe`, it "
          "does nothing else here");
  }
  in.charge(a.as_text().size() + b.as_text().size());
  std::string out = a.as_text() + b.as_text();
  return a.is_markup() || b.is_markup() ? Value::markup(std::move(out)) : Value(std::move(out));
}

// The indices that [start:stop:step] selects from `size` elements, in order (slice.indices in Python).
struct Range {
  int64_t start, stop, step;
};

int64_t slice_bound(const Value& v) {
  if (!v.is_int() && !v.is_bool()) throw TemplateError("slice indices must be integers or None");
  return v.as_int();
}

Range slice_range(const Value& start, const Value& stop, const Value& step, int64_t size) {
  Range r{0, 0, step.is_none() ? 1 : slice_bound(step)};
  if (r.step == 0) throw TemplateError("slice step cannot be zero");
  r.step = std::clamp<int64_t>(r.step, -size - 1, size + 1);  // the same elements, without overflow
  const int64_t low = r.step < 0 ? -1 : 0, high = r.step < 0 ? size - 1 : size;
  const auto bound = [&](const Value& v, int64_t otherwise) {
    if (v.is_none()) return otherwise;
    int64_t at = slice_bound(v);
    if (at < 0) at = at < -size ? low : at + size;
    return std::clamp(at, low, high);
  };
  r.start = bound(start, r.step < 0 ? high : low);
  r.stop = bound(stop, r.step < 0 ? low : high);
  return r;
}

const Value* element(const std::vector<Value>& items, int64_t index) {
  const auto size = static_cast<int64_t>(items.size());
  if (index < 0) index += size;
  return index < 0 || index >= size ? nullptr : &items[static_cast<size_t>(index)];
}

bool has_elements(const Value& v) { return is_list_or_tuple(v) || v.is_sequence(SequenceKind::kRange); }

std::optional<Value> element_or_key(const Value& object, const Value& key) {
  if (object.is_mapping()) {
    if (const Value* found = object.as_mapping().find(key)) return *found;
  } else if (has_elements(object) && (key.is_int() || key.is_bool())) {
    if (const Value* found = element(object.as_sequence().items, key.as_int())) return *found;
  } else if (object.is_text() && (key.is_int() || key.is_bool())) {
    const auto size = static_cast<int64_t>(length(object.as_text()));
    const int64_t i = key.as_int() < 0 ? key.as_int() + size : key.as_int();
    if (i >= 0 && i < size) {
      const std::string& s = object.as_text();
      const size_t begin = byte_offset(s, static_cast<size_t>(i));
      return Value(s.substr(begin, byte_offset(std::string_view(s).substr(begin), 1)));
    }
  }
  return std::nullopt;
}

std::optional<Value> own_attribute(const Value& object, std::string_view name) {
  if (object.is_namespace()) {
    for (const auto& [key, value] : object.as_namespace().attributes)
      if (key == name) return value;
    return std::nullopt;
  }
  if (object.is_loop()) return object.as_loop().attribute(name);
  return method(object, name);
}

Value missing(const Value& object, const Value& key) {
  if (!key.is_text())
    return Value::undefined(fmt::format("{} object has no element {}", object.type_name(), to_repr(key)));
  return Value::undefined(
      fmt::format("'{} object' has no attribute '{}'", object.type_name(), key.as_text()));
}

}  // namespace

Value binary(Interpreter& in, const std::string& op, const Value& a, const Value& b) {
  if (op == "%" && a.is_text()) return percent_format(in, a.as_text(), b);
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return reals(op, a.as_double(), b.as_double());
    return integers(op, a.as_int(), b.as_int());
  }
  if (op == "+" && a.is_text() && b.is_text()) return added_texts(in, a, b);
  if (op == "+" && is_list_or_tuple(a) && is_list_or_tuple(b) &&
      a.as_sequence().kind == b.as_sequence().kind) {
    std::vector<Value> items = a.as_sequence().items;
    items.insert(items.end(), b.as_sequence().items.begin(), b.as_sequence().items.end());
    in.charge(items.size() * sizeof(Value));
    return Value::sequence(a.as_sequence().kind, std::move(items));
  }
  if (op == "*") {
    const auto repeats = [](const Value& what, const Value& times) {
      return (what.is_text() || is_list_or_tuple(what)) && (times.is_int() || times.is_bool());
    };
    if (repeats(a, b)) return repeated(in, a, b.as_int());
    if (repeats(b, a)) return repeated(in, b, a.as_int());
  }
  wrong_types(op, a, b);
}

Value negative(const Value& value, bool plus) {
  if (value.is_undefined()) throw TemplateError(value.undefined_message());
  if (!value.is_number())
    throw TemplateError(
        fmt::format("bad operand type for unary {}: '{}'", plus ? '+' : '-', value.type_name()));
  if (value.is_float()) return Value(plus ? value.as_double() : -value.as_double());
  if (plus) return Value(value.as_int());
  if (value.as_int() == std::numeric_limits<int64_t>::min()) overflow("-");
  return Value(-value.as_int());
}

bool contains(Interpreter& in, const Value& container, const Value& item) {
  if (container.is_text()) {
    if (item.is_undefined()) throw TemplateError(item.undefined_message());
    if (!item.is_text())
      throw TemplateError(
          fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
    return container.as_text().find(item.as_text()) != std::string::npos;
  }
  if (container.is_mapping()) return container.as_mapping().find(item) != nullptr;
  if (container.is_none() || container.is_number())
    throw TemplateError(fmt::format("argument of type '{}' is not iterable", container.type_name()));
  const std::vector<Value> items = in.iterate(container);
  return std::any_of(items.begin(), items.end(), [&](const Value& v) { return equal(v, item); });
}

Value slice(Interpreter& in, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) throw TemplateError(object.undefined_message());
  if (object.is_text()) {
    const std::string_view text = object.as_text();
    if (step.is_none()) {
      const Range r = slice_range(start, stop, step, static_cast<int64_t>(length(text)));
      const size_t begin = byte_offset(text, static_cast<size_t>(r.start));
      const std::string_view rest = text.substr(begin);
      return in.text(std::string(
          rest.substr(0, byte_offset(rest, static_cast<size_t>(std::max<int64_t>(r.stop - r.start, 0))))));
    }
    in.charge(text.size() * sizeof(std::string));
    const std::vector<std::string> all = characters(text);
    const Range r = slice_range(start, stop, step, static_cast<int64_t>(all.size()));
    std::string out;
    for (int64_t i = r.start; r.step < 0 ? i > r.stop : i < r.stop; i += r.step)
      out += all[static_cast<size_t>(i)];
    return in.text(std::move(out));
  }
  if (!has_elements(object)) return missing(object, Value("slice"));
  const std::vector<Value>& all = object.as_sequence().items;
  const Range r = slice_range(start, stop, step, static_cast<int64_t>(all.size()));
  std::vector<Value> out;
  for (int64_t i = r.start; r.step < 0 ? i > r.stop : i < r.stop; i += r.step)
    out.push_back(all[static_cast<size_t>(i)]);
  in.charge(out.size() * sizeof(Value));
  return Value::sequence(object.as_sequence().kind, std::move(out));
}

Value Interpreter::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) throw TemplateError(object.undefined_message());
  if (auto own = own_attribute(object, name)) return std::move(*own);
  if (auto found = element_or_key(object, Value(name))) return std::move(*found);
  return missing(object, Value(name));
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (object.is_undefined()) throw TemplateError(object.undefined_message());
  if (auto found = element_or_key(object, key)) return std::move(*found);
  if (key.is_text())
    if (auto own = own_attribute(object, key.as_text())) return std::move(*own);
  return missing(object, key);
}

}  // namespace ostro::chat::jinja
