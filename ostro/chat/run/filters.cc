// Filters of single values. Filters over the items of a sequence are in sequence_filters.cc.

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include "ostro/chat/run/format.h"
#include "ostro/chat/run/interpreter.h"
#include "ostro/chat/run/parameters.h"
#include "ostro/chat/value/text.h"
#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::chat::jinja {
namespace {

Value default_filter(Interpreter&, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter default", {"default_value", "boolean"});
  if (v.is_undefined() || (p.flag(1, false) && !v.truthy())) return p.value_or(0, Value(""));
  return v;
}

Value length_filter(Interpreter&, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter length", {});
  if (v.is_undefined()) return Value(int64_t{0});
  if (v.is_text()) return Value(static_cast<int64_t>(length(v.as_text())));
  if (v.is_sequence()) return Value(static_cast<int64_t>(v.as_sequence().items.size()));
  if (v.is_mapping()) return Value(static_cast<int64_t>(v.as_mapping().size()));
  throw TemplateError(fmt::format("object of type '{}' has no length", v.type_name()));
}

Value trim(Interpreter& in, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter trim", {"chars"});
  const std::string s = to_text(v);
  const bool given = p.has(0) && !p.value(0).is_none();
  return in.text(std::string(given ? strip(s, Side::kBoth, p.text(0)) : strip(s, Side::kBoth)));
}

Value replace(Interpreter& in, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter replace", {"old", "new", "count"}, 2);
  const int64_t count = p.has(2) && !p.value(2).is_none() ? p.integer(2) : -1;
  return in.text(replace_bounded(in, to_text(v), to_text(p.value(0)), to_text(p.value(1)), count));
}

// As jinja2 does it: every word, where words are separated by brackets, dashes and spaces.
Value title_filter(Interpreter& in, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter title", {});
  const std::string s = to_text(v);
  const auto parts = [](uint32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
  };
  std::string out, word;
  const auto flush = [&] {
    if (word.empty()) return;
    const size_t first = byte_offset(word, 1);
    out += upper(word.substr(0, first)) + lower(word.substr(first));
    word.clear();
  };
  for (size_t i = 0; i < s.size();) {
    const tokenizer::CodePoint c = tokenizer::read_code_point(s.data() + i);
    if (parts(c.value)) {
      flush();
      out.append(s, i, c.length);
    } else {
      word.append(s, i, c.length);
    }
    i += c.length;
  }
  flush();
  return in.text(std::move(out));
}

Value indent(Interpreter& in, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter indent", {"width", "first", "blank"});
  if (v.is_undefined()) throw TemplateError(v.undefined_message());
  if (!v.is_text()) throw TemplateError(fmt::format("the filter indent needs a text, not {}", v.type_name()));
  std::string by;
  if (p.has(0) && p.value(0).is_text())
    by = p.text(0);
  else
    by = pad(in, "", p.integer_or(0, 4), true, false, " ");
  const std::vector<std::string> lines = split_lines(v.as_text() + "\n", false);
  if (by.size() > in.options().max_bytes / (lines.size() + 1)) in.charge(in.options().max_bytes + 1);
  std::string out = p.flag(1, false) ? by : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (p.flag(2, false) || !lines[i].empty())) out += by;
    out += lines[i];
  }
  return in.text(std::move(out));
}

Value tojson(Interpreter& in, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = p.flag(0, false);
  style.sort_keys = p.flag(3, false);
  if (p.has(1) && !p.value(1).is_none()) {
    style.lines = true;
    style.between = ",";
    style.indent = p.value(1).is_text()
                       ? p.text(1)
                       : pad(in, "", std::min<int64_t>(p.integer(1), 1000), true, false, " ");
  }
  if (p.has(2) && !p.value(2).is_none()) {
    const std::vector<Value> both = in.iterate(p.value(2));
    if (both.size() != 2)
      throw TemplateError("tojson: separators are two texts, between items and after keys");
    style.between = to_text(both[0]);
    style.after_key = to_text(both[1]);
  }
  return in.text(to_json(v, style));
}

// int() and float() accept white space around a text, and single underscores between digits.
std::string number_text(const std::string& text) {
  std::string s(strip(text, Side::kBoth));
  for (size_t i = 0; i < s.size(); ++i) {
    const auto digit = [&](size_t at) { return at < s.size() && s[at] >= '0' && s[at] <= '9'; };
    if (s[i] == '_' && (i == 0 || !digit(i - 1) || !digit(i + 1))) return {};
  }
  std::erase(s, '_');
  if (s.starts_with('+') && !s.starts_with("+-")) s.erase(0, 1);
  return s;
}

std::optional<double> parse_real(const std::string& text) {
  std::string s = number_text(text);
  double out = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), out);
  if (s.empty() || error != std::errc{} || end != s.data() + s.size()) return std::nullopt;
  return out;
}

Value int_filter(Interpreter&, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter int", {"default", "base"});
  const auto otherwise = [&] { return p.value_or(0, Value(int64_t{0})); };
  const auto whole = [&](double d) {
    if (!(std::abs(d) < 9.2e18)) return otherwise();
    return Value(static_cast<int64_t>(d));
  };
  if (v.is_undefined()) throw TemplateError(v.undefined_message());
  if (v.is_float()) return whole(v.as_double());
  if (v.is_number()) return Value(v.as_int());
  if (!v.is_text()) return otherwise();
  const int64_t base = p.integer_or(1, 10);
  if (base < 2 || base > 36) throw TemplateError("the filter int: base must be 2 to 36");
  std::string s = number_text(v.as_text());
  const std::string sign = s.starts_with('-') ? "-" : "";
  const std::string prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
  if (!prefix.empty() && lower(s.substr(sign.size())).starts_with(prefix))
    s = sign + s.substr(sign.size() + 2);
  int64_t out = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), out, static_cast<int>(base));
  if (error == std::errc::result_out_of_range)
    throw TemplateError(fmt::format("the filter int: {} does not fit 64 bits", s));
  if (!s.empty() && error == std::errc{} && end == s.data() + s.size()) return Value(out);
  const std::optional<double> real = parse_real(v.as_text());
  return real ? whole(*real) : otherwise();
}

Value float_filter(Interpreter&, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter float", {"default"});
  if (v.is_undefined()) throw TemplateError(v.undefined_message());
  if (v.is_number()) return Value(v.as_double());
  const std::optional<double> real = v.is_text() ? parse_real(v.as_text()) : std::nullopt;
  return real ? Value(*real) : p.value_or(0, Value(0.0));
}

Value round_filter(Interpreter&, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter round", {"precision", "method"});
  if (!v.is_number())
    throw TemplateError(fmt::format("the filter round needs a number, not {}", v.type_name()));
  const int64_t precision = p.integer_or(0, 0);
  if (precision < 0 || precision > 300) throw TemplateError("the filter round: precision must be 0 to 300");
  const std::string method = p.has(1) ? p.text(1) : "common";
  if (method == "common") {
    if (!v.is_float()) return Value(v.as_int());
    return Value(std::strtod(fmt::format("{:.{}f}", v.as_double(), precision).c_str(), nullptr));
  }
  if (method != "ceil" && method != "floor")
    throw TemplateError("the filter round: method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = v.as_double() * scale;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value abs_filter(Interpreter&, const Value& v, Arguments&) {
  if (!v.is_number())
    throw TemplateError(fmt::format("the filter abs needs a number, not {}", v.type_name()));
  if (v.is_float()) return Value(std::abs(v.as_double()));
  return v.as_int() < 0 ? negative(v, false) : Value(v.as_int());
}

Value format_filter(Interpreter& in, const Value& v, Arguments& a) {
  if (a.named.empty()) return percent_format(in, to_text(v), Value::tuple(a.positional));
  auto named = std::make_shared<Mapping>();
  for (const auto& [name, value] : a.named) named->set(name, value);
  return percent_format(in, to_text(v), Value(std::shared_ptr<const Mapping>(std::move(named))));
}

Value escape(Interpreter& in, const Value& v, Arguments&) {
  if (v.is_markup()) return v;
  std::string out;
  for (const char c : to_text(v)) {
    static constexpr std::string_view kFrom = "&<>\"'";
    static constexpr std::string_view kTo[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    if (const size_t k = kFrom.find(c); k != std::string_view::npos)
      out += kTo[k];
    else
      out += c;
  }
  in.charge(out.size());
  return Value::markup(std::move(out));
}

Value wordcount(Interpreter&, const Value& v, Arguments&) {
  const std::string s = to_text(v);
  int64_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < s.size();) {
    const tokenizer::CodePoint c = tokenizer::read_code_point(s.data() + i);
    const bool is_word = (tokenizer::code_point_class(c.value) & tokenizer::kWord) != 0;
    words += is_word && !inside ? 1 : 0;
    inside = is_word;
    i += c.length;
  }
  return Value(words);
}

}  // namespace

FilterFunction find_filter(std::string_view name) {
  static const std::map<std::string, FilterFunction, std::less<>> table = {
      {"default", default_filter},
      {"d", default_filter},
      {"length", length_filter},
      {"count", length_filter},
      {"trim", trim},
      {"replace", replace},
      {"title", title_filter},
      {"indent", indent},
      {"tojson", tojson},
      {"int", int_filter},
      {"float", float_filter},
      {"round", round_filter},
      {"abs", abs_filter},
      {"format", format_filter},
      {"escape", escape},
      {"e", escape},
      {"wordcount", wordcount},
      {"upper", [](Interpreter& in, const Value& v, Arguments&) { return in.text(upper(to_text(v))); }},
      {"lower", [](Interpreter& in, const Value& v, Arguments&) { return in.text(lower(to_text(v))); }},
      {"capitalize",
       [](Interpreter& in, const Value& v, Arguments&) { return in.text(capitalize(to_text(v))); }},
      {"string",
       [](Interpreter& in, const Value& v, Arguments&) { return v.is_text() ? v : in.text(to_text(v)); }},
      {"safe", [](Interpreter&, const Value& v, Arguments&) { return Value::markup(to_text(v)); }},
      {"center",
       [](Interpreter& in, const Value& v, Arguments& a) {
         const Parameters p(a, "the filter center", {"width"});
         return in.text(pad(in, to_text(v), p.integer_or(0, 80), true, true, " "));
       }},
      {"attr",
       [](Interpreter& in, const Value& v, Arguments& a) {
         const Parameters p(a, "the filter attr", {"name"}, 1);
         // Only methods and loop variables, never keys.
         if (v.is_mapping() && !method(v, p.text(0)))
           return Value::undefined(fmt::format("'dict object' has no attribute '{}'", p.text(0)));
         return in.attribute(v, p.text(0));
       }},
  };
  const auto found = table.find(name);
  return found == table.end() ? find_sequence_filter(name) : found->second;
}

}  // namespace ostro::chat::jinja
