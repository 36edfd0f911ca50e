// Methods of texts, lists and dicts. Methods that change their object are refused, as in the sandbox of
// transformers.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "ostro/chat/run/format.h"
#include "ostro/chat/run/interpreter.h"
#include "ostro/chat/run/parameters.h"
#include "ostro/chat/value/text.h"
#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::chat::jinja {
namespace {

using Method = Value (*)(Interpreter&, const Value& self, Arguments&);
using Table = std::map<std::string, Method, std::less<>>;

Value texts(Interpreter& in, std::vector<std::string> parts) {
  std::vector<Value> out;
  for (std::string& p : parts) out.push_back(in.text(std::move(p)));
  return in.list(std::move(out));
}

template <Side side>
Value strip_method(Interpreter& in, const Value& self, Arguments& a) {
  const Parameters p(a, "strip", {"chars"});
  const bool given = p.has(0) && !p.value(0).is_none();
  return in.text(std::string(given ? strip(self.as_text(), side, p.text(0)) : strip(self.as_text(), side)));
}

template <bool from_right>
Value split_method(Interpreter& in, const Value& self, Arguments& a) {
  const Parameters p(a, "split", {"sep", "maxsplit"});
  const int64_t limit = p.integer_or(1, -1);
  if (!p.has(0) || p.value(0).is_none()) return texts(in, split_space(self.as_text(), limit, from_right));
  if (p.text(0).empty()) throw TemplateError("split: empty separator");
  return texts(in, split(self.as_text(), p.text(0), limit, from_right));
}

template <bool from_right>
Value partition(Interpreter& in, const Value& self, Arguments& a) {
  const Parameters p(a, "partition", {"sep"}, 1);
  const std::string &s = self.as_text(), &by = p.text(0);
  if (by.empty()) throw TemplateError("partition: empty separator");
  const size_t at = from_right ? s.rfind(by) : s.find(by);
  std::vector<Value> out;
  if (at == std::string::npos)
    out = from_right ? std::vector<Value>{"", "", self} : std::vector<Value>{self, "", ""};
  else
    out = {in.text(s.substr(0, at)), p.value(0), in.text(s.substr(at + by.size()))};
  return Value::tuple(std::move(out));
}

// The part [start, end) of self for startswith, find and count. Nothing when start is after the end of self.
struct Window {
  bool valid;
  std::string_view text;
  int64_t first;  // index of its first character
};
Window window(const Value& self, const Parameters& p) {
  const auto size = static_cast<int64_t>(length(self.as_text()));
  const auto bound = [&](size_t i, int64_t otherwise) {
    if (!p.has(i) || p.value(i).is_none()) return otherwise;
    const int64_t at = p.integer(i);
    return at < 0 ? std::max<int64_t>(at + size, 0) : at;
  };
  const int64_t first = bound(1, 0), last = std::min(bound(2, size), size);
  if (first > last) return {false, {}, 0};
  const std::string_view s = self.as_text();
  const size_t begin = byte_offset(s, static_cast<size_t>(first));
  return {true, s.substr(begin, byte_offset(s, static_cast<size_t>(last)) - begin), first};
}

template <bool at_end>
Value starts_or_ends(Interpreter&, const Value& self, Arguments& a) {
  const Parameters p(a, at_end ? "endswith" : "startswith", {"prefix", "start", "end"}, 1);
  const Window w = window(self, p);
  const auto fits = [&](const Value& v) {
    if (v.is_undefined()) throw TemplateError(v.undefined_message());
    if (!v.is_text())
      throw TemplateError(fmt::format("{} first arg must be str or a tuple of str, not {}",
                                      at_end ? "endswith" : "startswith", v.type_name()));
    return w.valid && (at_end ? w.text.ends_with(v.as_text()) : w.text.starts_with(v.as_text()));
  };
  if (!p.value(0).is_sequence(SequenceKind::kTuple)) return Value(fits(p.value(0)));
  const std::vector<Value>& any = p.value(0).as_sequence().items;
  return Value(std::any_of(any.begin(), any.end(), fits));
}

template <bool from_right, bool must>
Value find_method(Interpreter&, const Value& self, Arguments& a) {
  const Parameters p(a, must ? "index" : "find", {"sub", "start", "end"}, 1);
  const Window w = window(self, p);
  const size_t at = !w.valid     ? std::string_view::npos
                    : from_right ? w.text.rfind(p.text(0))
                                 : w.text.find(p.text(0));
  if (at != std::string_view::npos)
    return Value(w.first + static_cast<int64_t>(length(w.text.substr(0, at))));
  if (must) throw TemplateError("index: substring not found");
  return Value(int64_t{-1});
}

Value count_method(Interpreter&, const Value& self, Arguments& a) {
  const Parameters p(a, "count", {"sub", "start", "end"}, 1);
  const Window w = window(self, p);
  if (!w.valid) return Value(int64_t{0});
  if (p.text(0).empty()) return Value(static_cast<int64_t>(length(w.text)) + 1);
  int64_t n = 0;
  for (size_t at = w.text.find(p.text(0)); at != std::string_view::npos;
       at = w.text.find(p.text(0), at + p.text(0).size()))
    ++n;
  return Value(n);
}

// isalpha and similar: true if there is at least one character and all fit. Refused where it would need
// Unicode tables that are not included.
bool is_letter(uint32_t c) { return (tokenizer::code_point_class(c) & tokenizer::kLetter) != 0; }
bool is_letter_or_number(uint32_t c) {
  return (tokenizer::code_point_class(c) & (tokenizer::kLetter | tokenizer::kNumber)) != 0;
}
bool is_ascii_digit(uint32_t c) { return c >= '0' && c <= '9'; }
using Fits = bool (*)(uint32_t);
template <Fits fits, bool ascii_only>
Value all_are(Interpreter&, const Value& self, Arguments& a) {
  const Parameters p(a, "a test of characters", {});
  const std::string& s = self.as_text();
  bool all = !s.empty();
  for (size_t i = 0; i < s.size();) {
    const tokenizer::CodePoint c = tokenizer::read_code_point(s.data() + i);
    if (ascii_only && c.value >= 0x80)
      throw TemplateError("this test of characters is supported for ASCII text only");
    all = all && fits(c.value);
    i += c.length;
  }
  return Value(all);
}

template <bool want_upper>
Value is_case(Interpreter&, const Value& self, Arguments& a) {
  const Parameters p(a, want_upper ? "isupper" : "islower", {});
  return Value(has_case(self.as_text(), want_upper));
}

template <bool left, bool right>
Value justify(Interpreter& in, const Value& self, Arguments& a) {
  const Parameters p(a, left && right ? "center" : left ? "rjust" : "ljust", {"width", "fillchar"}, 1);
  const std::string fill = p.has(1) ? p.text(1) : " ";
  if (length(fill) != 1) throw TemplateError("the fill character must be exactly one character long");
  return in.text(pad(in, self.as_text(), p.integer(0), left, right, fill));
}

const Table& text_methods() {
  static const Table table = {
      {"strip", strip_method<Side::kBoth>},
      {"lstrip", strip_method<Side::kLeft>},
      {"rstrip", strip_method<Side::kRight>},
      {"split", split_method<false>},
      {"rsplit", split_method<true>},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
      {"startswith", starts_or_ends<false>},
      {"endswith", starts_or_ends<true>},
      {"find", find_method<false, false>},
      {"rfind", find_method<true, false>},
      {"index", find_method<false, true>},
      {"rindex", find_method<true, true>},
      {"count", count_method},
      {"center", justify<true, true>},
      {"ljust", justify<false, true>},
      {"rjust", justify<true, false>},
      {"isupper", is_case<true>},
      {"islower", is_case<false>},
      {"isspace", all_are<is_space, false>},
      {"isalpha", all_are<is_letter, false>},
      {"isalnum", all_are<is_letter_or_number, false>},
      {"isdigit", all_are<is_ascii_digit, true>},
      {"isdecimal", all_are<is_ascii_digit, true>},
      {"isnumeric", all_are<is_ascii_digit, true>},
      {"upper", [](Interpreter& in, const Value& v, Arguments&) { return in.text(upper(v.as_text())); }},
      {"lower", [](Interpreter& in, const Value& v, Arguments&) { return in.text(lower(v.as_text())); }},
      {"title", [](Interpreter& in, const Value& v, Arguments&) { return in.text(title(v.as_text())); }},
      {"capitalize",
       [](Interpreter& in, const Value& v, Arguments&) { return in.text(capitalize(v.as_text())); }},
      {"splitlines",
       [](Interpreter& in, const Value& v, Arguments& a) {
         return texts(in, split_lines(v.as_text(), Parameters(a, "splitlines", {"keepends"}).flag(0, false)));
       }},
      {"replace",
       [](Interpreter& in, const Value& v, Arguments& a) {
         const Parameters p(a, "replace", {"old", "new", "count"}, 2);
         return in.text(replace_bounded(in, v.as_text(), p.text(0), p.text(1), p.integer_or(2, -1)));
       }},
      {"removeprefix",
       [](Interpreter& in, const Value& v, Arguments& a) {
         const Parameters p(a, "removeprefix", {"prefix"}, 1);
         const bool there = v.as_text().starts_with(p.text(0));
         return in.text(there ? v.as_text().substr(p.text(0).size()) : v.as_text());
       }},
      {"removesuffix",
       [](Interpreter& in, const Value& v, Arguments& a) {
         const Parameters p(a, "removesuffix", {"suffix"}, 1);
         const bool there = v.as_text().ends_with(p.text(0));
         return in.text(there ? v.as_text().substr(0, v.as_text().size() - p.text(0).size()) : v.as_text());
       }},
      {"join",
       [](Interpreter& in, const Value& v, Arguments& a) {
         const Parameters p(a, "join", {"iterable"}, 1);
         std::string out;
         bool first = true;
         for (const Value& item : in.iterate(p.value(0))) {
           if (!item.is_text())
             throw TemplateError(fmt::format("join: expected str, found {}", item.type_name()));
           if (!first) out += v.as_text();
           first = false;
           out += item.as_text();
         }
         return in.text(std::move(out));
       }},
      {"zfill",
       [](Interpreter& in, const Value& v, Arguments& a) {
         const Parameters p(a, "zfill", {"width"}, 1);
         const std::string& s = v.as_text();
         const size_t sign = s.starts_with('+') || s.starts_with('-') ? 1 : 0;
         return in.text(s.substr(0, sign) +
                        pad(in, s.substr(sign), p.integer(0) - static_cast<int64_t>(sign), true, false, "0"));
       }},
      {"format",
       [](Interpreter& in, const Value& v, Arguments& a) { return brace_format(in, v.as_text(), a); }},
  };
  return table;
}

const Table& dict_methods() {
  static const Table table = {
      {"get",
       [](Interpreter&, const Value& v, Arguments& a) {
         const Parameters p(a, "get", {"key", "default"}, 1);
         const Value* found = v.as_mapping().find(p.value(0));
         return found != nullptr ? *found : p.value_or(1, Value());
       }},
      {"items",
       [](Interpreter& in, const Value& v, Arguments&) {
         std::vector<Value> out;
         for (const auto& [key, value] : v.as_mapping().items()) out.push_back(Value::tuple({key, value}));
         in.charge(out.size() * 4 * sizeof(Value));
         return Value::sequence(SequenceKind::kItems, std::move(out));
       }},
      {"keys", [](Interpreter& in, const Value& v,
                  Arguments&) { return Value::sequence(SequenceKind::kKeys, in.iterate(v)); }},
      {"values",
       [](Interpreter& in, const Value& v, Arguments&) {
         std::vector<Value> out;
         for (const auto& [key, value] : v.as_mapping().items()) out.push_back(value);
         in.charge(out.size() * sizeof(Value));
         return Value::sequence(SequenceKind::kValues, std::move(out));
       }},
      {"copy", [](Interpreter&, const Value& v, Arguments&) { return v; }},
  };
  return table;
}

const Table& list_methods() {
  static const Table table = {
      {"index",
       [](Interpreter&, const Value& v, Arguments& a) {
         const Parameters p(a, "index", {"value"}, 1);
         const std::vector<Value>& items = v.as_sequence().items;
         for (size_t i = 0; i < items.size(); ++i)
           if (equal(items[i], p.value(0))) return Value(static_cast<int64_t>(i));
         throw TemplateError(fmt::format("index: {} is not in the list", to_repr(p.value(0))));
       }},
      {"count",
       [](Interpreter&, const Value& v, Arguments& a) {
         const Parameters p(a, "count", {"value"}, 1);
         const std::vector<Value>& items = v.as_sequence().items;
         return Value(static_cast<int64_t>(std::count_if(
             items.begin(), items.end(), [&](const Value& item) { return equal(item, p.value(0)); })));
       }},
      {"copy", [](Interpreter&, const Value& v, Arguments&) { return v; }},
  };
  return table;
}

// Methods of Python that are not implemented. Using one is an error, and not an undefined value as for a
// missing key.
bool is_unsupported_text_method(std::string_view name) {
  static constexpr std::array kNames = {"casefold",  "encode",   "expandtabs",   "format_map",
                                        "isascii",   "istitle",  "isidentifier", "isprintable",
                                        "maketrans", "swapcase", "translate"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_changing(const Value& object, std::string_view name) {
  static constexpr std::array kDict = {"clear", "pop", "popitem", "setdefault", "update"};
  static constexpr std::array kList = {"append", "clear", "pop",    "reverse",
                                       "insert", "sort",  "extend", "remove"};
  if (object.is_mapping()) return std::find(kDict.begin(), kDict.end(), name) != kDict.end();
  return object.is_sequence(SequenceKind::kList) &&
         std::find(kList.begin(), kList.end(), name) != kList.end();
}

}  // namespace

std::optional<Value> method(const Value& object, std::string_view name) {
  if (is_changing(object, name))
    return Value::undefined(
        fmt::format("{}() would change a {}, which templates may not; make a new one ({})", name,
                    object.type_name(), object.is_mapping() ? "dict(old, key=value)" : "list + [item]"));
  const Table* table = nullptr;
  if (object.is_text())
    table = &text_methods();
  else if (object.is_mapping())
    table = &dict_methods();
  else if (object.is_sequence(SequenceKind::kList) || object.is_sequence(SequenceKind::kTuple))
    table = &list_methods();
  if (table == nullptr) return std::nullopt;
  if (object.is_text() && is_unsupported_text_method(name))
    return Value::undefined(fmt::format("the method {} of texts is not supported", name));
  const auto found = table->find(name);
  if (found == table->end()) return std::nullopt;
  return Value(Callable{std::string(name), [object, call = found->second](Interpreter& in, Arguments& a) {
                          return call(in, object, a);
                        }});
}

}  // namespace ostro::chat::jinja
