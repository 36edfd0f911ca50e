#include "ostro/chat/run/format.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "ostro/chat/value/text.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::chat::jinja {

std::string pad(Interpreter& in, const std::string& text, int64_t width, bool left, bool right,
                std::string_view fill) {
  const auto size = static_cast<int64_t>(length(text));
  if (width <= size) return text;
  const auto missing = static_cast<size_t>(width - size);
  if (missing > in.options().max_bytes) in.charge(missing);
  // If the padding is odd, str.center puts the larger half on the left when the width is odd.
  const size_t before = !left    ? 0
                        : !right ? missing
                                 : missing / 2 + (missing & static_cast<size_t>(width) & 1);
  std::string out;
  for (size_t i = 0; i < before; ++i) out += fill;
  out += text;
  for (size_t i = before; i < missing; ++i) out += fill;
  return out;
}

// Counts the matches before replacing if the result could exceed max_bytes, so that a template cannot
// allocate more than its limit.
std::string replace_bounded(Interpreter& in, std::string_view text, std::string_view from,
                            std::string_view to, int64_t count) {
  if (to.size() > from.size()) {
    const size_t most = from.empty() ? text.size() + 1 : text.size() / from.size();
    if (most > in.options().max_bytes / to.size()) {  // may be too much: count
      size_t found = from.empty() ? most : 0;
      for (size_t at = from.empty() ? std::string_view::npos : text.find(from); at != std::string_view::npos;
           at = text.find(from, at + from.size()))
        ++found;
      if (count >= 0) found = std::min(found, static_cast<size_t>(count));
      if (found > in.options().max_bytes / to.size()) in.charge(in.options().max_bytes + 1);
    }
  }
  return replace_all(text, from, to, count);
}

// Python's printf-style formatting: after a %, a key in brackets, the flags 0 and -, a width, a precision and
// the kind s, r, d, i or f. A tuple gives one argument after another, a dict gives them by key, any other
// value is the only argument. At the end no argument may be left.
Value percent_format(Interpreter& in, const std::string& format, const Value& arguments) {
  std::string out;
  size_t next = 0;
  const bool many = arguments.is_sequence(SequenceKind::kTuple);
  const auto take = [&]() -> const Value& {
    if (many && next < arguments.as_sequence().items.size()) return arguments.as_sequence().items[next++];
    if (!many && next++ == 0) return arguments;
    throw TemplateError("%: not enough arguments for format string");
  };
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    if (++i == format.size()) throw TemplateError("%: incomplete format");
    std::string name;
    const Value* value = nullptr;
    if (format[i] == '(') {
      const size_t close = format.find(')', i);
      if (close == std::string::npos) throw TemplateError("%: incomplete format key");
      name = format.substr(i + 1, close - i - 1);
      if (!arguments.is_mapping()) throw TemplateError("%: format requires a mapping");
      value = arguments.as_mapping().find(name);
      if (value == nullptr) throw TemplateError(fmt::format("%: no key {}", repr_of_text(name)));
      next = 1;
      i = close + 1;
    }
    bool zero = false, left = false;
    for (; i < format.size() && (format[i] == '0' || format[i] == '-'); ++i)
      (format[i] == '0' ? zero : left) = true;
    size_t width = 0;
    for (; i < format.size() && format[i] >= '0' && format[i] <= '9' && width < 100000; ++i)
      width = width * 10 + static_cast<size_t>(format[i] - '0');
    int precision = -1;
    if (i < format.size() && format[i] == '.') {
      precision = 0;
      for (++i; i < format.size() && format[i] >= '0' && format[i] <= '9' && precision < 1000; ++i)
        precision = precision * 10 + (format[i] - '0');
    }
    const char kind = i < format.size() ? format[i] : '\0';
    if (kind == '%') {
      out += '%';
      continue;
    }
    const Value& v = value != nullptr ? *value : take();
    std::string piece;
    if (kind == 's' || kind == 'r') {
      piece = kind == 's' ? to_text(v) : to_repr(v);
      if (precision >= 0) piece.resize(byte_offset(piece, static_cast<size_t>(precision)));
      zero = false;
    } else if ((kind == 'd' || kind == 'i') && v.is_number()) {
      piece = fmt::format("{}", v.is_float() ? static_cast<int64_t>(v.as_double()) : v.as_int());
    } else if (kind == 'f' && v.is_number()) {
      piece = fmt::format("{:.{}f}", v.as_double(), precision < 0 ? 6 : precision);
    } else {
      throw TemplateError(fmt::format("%{}: not supported for {}", kind, v.type_name()));
    }
    if (zero && !left && piece.starts_with('-'))
      out += "-" + pad(in, piece.substr(1), static_cast<int64_t>(width) - 1, true, false, "0");
    else
      out += pad(in, piece, static_cast<int64_t>(width), !left, left, zero && !left ? "0" : " ");
  }
  if (many ? next < arguments.as_sequence().items.size() : next == 0 && !arguments.is_mapping())
    throw TemplateError("%: not all arguments converted during string formatting");
  return in.text(std::move(out));
}

// Only {}, {0} and {name} are fields, without conversion or format; {{ and }} are single braces.
Value brace_format(Interpreter& in, const std::string& format, const Arguments& arguments) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
      out += c;
      ++i;
      continue;
    }
    if (c == '}') throw TemplateError("format: single '}' encountered in format string");
    if (c != '{') {
      out += c;
      continue;
    }
    const size_t close = format.find('}', i);
    if (close == std::string::npos) throw TemplateError("format: expected '}' before end of string");
    const std::string field = format.substr(i + 1, close - i - 1);
    i = close;
    if (field.find_first_of(":!.[{") != std::string::npos)
      throw TemplateError(
          fmt::format("format: the field {{{}}} is not supported; use {{}}, {{0}} or {{name}}", field));
    const Value* value = nullptr;
    if (field.empty() ||
        std::all_of(field.begin(), field.end(), [](char d) { return d >= '0' && d <= '9'; })) {
      size_t index = next++;
      if (!field.empty()) std::from_chars(field.data(), field.data() + field.size(), index);
      if (index < arguments.positional.size()) value = &arguments.positional[index];
    } else {
      for (const auto& [name, v] : arguments.named)
        if (name == field) value = &v;
    }
    if (value == nullptr) throw TemplateError(fmt::format("format: there is no argument for {{{}}}", field));
    out += to_text(*value);
  }
  return in.text(std::move(out));
}

namespace {

void json_text(std::string_view text, bool ascii, std::string& out) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    static constexpr std::string_view kFrom = "\"\\\n\r\t\b\f", kTo = "\"\\nrtbf";
    if (const size_t k = kFrom.find(text[i]); k != std::string_view::npos) {
      (out += '\\') += kTo[k];
      ++i;
    } else if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", byte);
      ++i;
    } else if (byte < 0x80 || !ascii) {
      out += text[i++];
    } else {
      const tokenizer::CodePoint c = tokenizer::read_code_point(text.data() + i);
      if (c.value < 0x10000)
        out += fmt::format("\\u{:04x}", c.value);
      else  // a pair of surrogates
        out += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (c.value >> 10), 0xDC00 + (c.value & 0x3FF));
      i += c.length;
    }
  }
  out += '"';
}

std::string json_key(const Value& key) {
  if (key.is_text()) return key.as_text();
  if (key.is_bool()) return key.as_bool() ? "true" : "false";
  if (key.is_none()) return "null";
  if (key.is_number()) return to_text(key);
  throw TemplateError(
      fmt::format("tojson: keys must be str, int, float, bool or None, not {}", key.type_name()));
}

// Writes as json.dumps does. `depth` counts the containers around `v`; it limits the recursion and is the
// indentation of its lines.
void json_at(const Value& v, const JsonStyle& style, int depth, std::string& out) {
  if (depth > 200) throw TemplateError("tojson: values nested more than 200 deep");
  const auto line = [&](int levels) {
    if (!style.lines) return;
    out += '\n';
    for (int i = 0; i < levels; ++i) out += style.indent;
  };
  if (v.is_text()) return json_text(v.as_text(), style.ascii, out);
  if (v.is_none()) {
    out += "null";
  } else if (v.is_bool()) {
    out += v.as_bool() ? "true" : "false";
  } else if (v.is_float() && !(v.as_double() - v.as_double() == 0)) {
    out += v.as_double() != v.as_double() ? "NaN" : v.as_double() < 0 ? "-Infinity" : "Infinity";
  } else if (v.is_number()) {
    out += to_text(v);
  } else if (v.is_sequence(SequenceKind::kList) || v.is_sequence(SequenceKind::kTuple)) {
    const std::vector<Value>& items = v.as_sequence().items;
    out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += style.between;
      line(depth + 1);
      json_at(items[i], style, depth + 1, out);
    }
    if (!items.empty()) line(depth);
    out += ']';
  } else if (v.is_mapping()) {
    std::vector<std::pair<Value, Value>> items = v.as_mapping().items();
    if (style.sort_keys)
      std::stable_sort(items.begin(), items.end(),
                       [](const auto& a, const auto& b) { return less(a.first, b.first); });
    out += '{';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += style.between;
      line(depth + 1);
      json_text(json_key(items[i].first), style.ascii, out);
      out += style.after_key;
      json_at(items[i].second, style, depth + 1, out);
    }
    if (!items.empty()) line(depth);
    out += '}';
  } else {
    throw TemplateError(v.is_undefined() ? v.undefined_message()
                                         : fmt::format("tojson: a {} is not JSON", v.type_name()));
  }
}

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style) {
  std::string out;
  json_at(value, style, 0, out);
  return out;
}

// All directives are checked before any is formatted. A - after the % drops the padding, as on Linux. %Z is
// empty, as in Python's datetime.now(), which has no time zone.
std::string format_time(std::string_view format, int64_t seconds) {
  static constexpr std::string_view kDirectives = "aAbBdHIjmMpSyYZ%eFTDR";
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') continue;
    ++i;
    if (i < format.size() && format[i] == '-') ++i;  // without padding, as on Linux
    if (i == format.size() || kDirectives.find(format[i]) == std::string_view::npos)
      throw TemplateError(fmt::format("strftime_now: a directive in \"{}\" is not supported", format));
  }
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string directive = "%";
    if (format[++i] == '-') directive += format[i++];
    directive += format[i];
    if (format[i] == 'Z') continue;  // datetime.now() has no time zone
    std::array<char, 64> buffer{};
    out.append(buffer.data(), std::strftime(buffer.data(), buffer.size(), directive.c_str(), &parts));
  }
  return out;
}

}  // namespace ostro::chat::jinja
