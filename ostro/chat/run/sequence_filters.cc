// Filters over the items of a sequence. Where jinja2 returns a generator, so do we. Templates can see the
// difference: a generator is true even when empty, and can be iterated only once.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "ostro/chat/run/interpreter.h"
#include "ostro/chat/run/parameters.h"
#include "ostro/chat/value/text.h"

namespace ostro::chat::jinja {
namespace {

// item.a.b.0 for the attribute "a.b.0"; the item itself when no attribute is given.
Value follow(Interpreter& in, Value item, const Value& path, const Value* otherwise = nullptr) {
  if (path.is_none()) return item;
  std::vector<Value> parts;
  if (!path.is_text()) {
    parts.push_back(path);
  } else {
    for (std::string& part : split(path.as_text(), ".", -1, false)) {
      int64_t number = 0;
      const char* end = part.data() + part.size();
      const bool digits =
          !part.empty() && part[0] != '-' && std::from_chars(part.data(), end, number).ptr == end;
      parts.push_back(digits ? Value(number) : Value(std::move(part)));
    }
  }
  for (const Value& part : parts) {
    item = in.item(item, part);
    if (otherwise != nullptr && item.is_undefined()) item = *otherwise;
  }
  return item;
}

Value without_case(const Value& v) { return v.is_text() ? Value(lower(v.as_text())) : v; }

Value first(Interpreter&, const Value& v, Arguments&) {
  if (v.is_text()) {
    if (!v.as_text().empty()) return Value(v.as_text().substr(0, byte_offset(v.as_text(), 1)));
  } else if (v.is_generator()) {
    Generator& g = v.as_generator();
    if (g.next < g.items.size()) return g.items[g.next++];
  } else if (v.is_sequence()) {
    if (!v.as_sequence().items.empty()) return v.as_sequence().items.front();
  } else if (v.is_mapping()) {
    if (v.as_mapping().size() > 0) return v.as_mapping().items().front().first;
  } else if (!v.is_undefined()) {
    throw TemplateError(fmt::format("'{}' object is not iterable", v.type_name()));
  }
  return Value::undefined("No first item, sequence was empty.");
}

Value last(Interpreter& in, const Value& v, Arguments&) {
  if (v.is_generator())
    throw TemplateError("the filter last: a generator cannot be reversed; use `| list | last`");
  const std::vector<Value> items = in.iterate(v);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value join(Interpreter& in, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter join", {"d", "attribute"});
  const std::string between = p.has(0) ? to_text(p.value(0)) : "";
  std::string out;
  bool is_first = true;
  for (Value& item : in.iterate(v)) {
    if (!is_first) out += between;
    is_first = false;
    out += to_text(p.has(1) ? follow(in, std::move(item), p.value(1)) : item);
    if (out.size() > in.options().max_bytes) in.charge(out.size());
  }
  return in.text(std::move(out));
}

Value reverse(Interpreter& in, const Value& v, Arguments&) {
  if (v.is_generator())
    throw TemplateError("the filter reverse: a generator cannot be reversed; use `| list | reverse`");
  std::vector<Value> items = in.iterate(v);
  std::reverse(items.begin(), items.end());
  if (!v.is_text()) return Value::generator(std::move(items));
  std::string out;
  for (const Value& c : items) out += c.as_text();
  return in.text(std::move(out));
}

Value items(Interpreter& in, const Value& v, Arguments& a) {
  if (v.is_undefined()) return Value::generator({});
  if (!v.is_mapping())
    throw TemplateError(fmt::format("the filter items needs a dict, not {}", v.type_name()));
  Arguments none;
  const Value all = in.call(in.attribute(v, "items"), a.positional.empty() ? none : a);
  return Value::generator(all.as_sequence().items);
}

Value map(Interpreter& in, const Value& v, Arguments& a) {
  std::vector<Value> out;
  if (!v.truthy()) return Value::generator({});
  if (a.positional.empty()) {
    const Parameters p(a, "the filter map", {"attribute", "default"}, 1);
    for (Value& item : in.iterate(v))
      out.push_back(follow(in, std::move(item), p.value(0), p.has(1) ? &p.value(1) : nullptr));
  } else {
    const std::string name = to_text(a.positional[0]);
    Arguments rest{{a.positional.begin() + 1, a.positional.end()}, a.named};
    for (const Value& item : in.iterate(v)) {
      in.step();
      out.push_back(in.filter(name, item, rest));
    }
  }
  return Value::generator(std::move(out));
}

// select, reject, selectattr, rejectattr.
template <bool wanted, bool attribute>
Value choose(Interpreter& in, const Value& v, Arguments& a) {
  std::vector<Value> out;
  if (!v.truthy()) return Value::generator({});
  if (attribute && a.positional.empty())
    throw TemplateError(
        fmt::format("the filter {} needs the name of an attribute", wanted ? "selectattr" : "rejectattr"));
  const size_t test_at = attribute ? 1 : 0;
  const bool tests = a.positional.size() > test_at;
  const std::string test = tests ? to_text(a.positional[test_at]) : "";
  Arguments rest;
  if (tests)
    rest = {{a.positional.begin() + static_cast<std::ptrdiff_t>(test_at) + 1, a.positional.end()}, a.named};
  for (const Value& item : in.iterate(v)) {
    in.step();
    const Value subject = attribute ? follow(in, item, a.positional[0]) : item;
    if ((tests ? in.test(test, subject, rest) : subject.truthy()) == wanted) out.push_back(item);
  }
  return Value::generator(std::move(out));
}

void sort_by(std::vector<std::pair<Value, Value>>& keyed, bool descending) {
  // As in Python, sorting with `reverse` keeps equal items in their order.
  std::stable_sort(keyed.begin(), keyed.end(), [descending](const auto& x, const auto& y) {
    return descending ? less(y.first, x.first) : less(x.first, y.first);
  });
}

Value sort(Interpreter& in, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter sort", {"reverse", "case_sensitive", "attribute"});
  std::vector<Value> paths;
  if (p.has(2) && p.value(2).is_text())
    for (std::string& path : split(p.text(2), ",", -1, false)) paths.emplace_back(std::move(path));
  else
    paths.push_back(p.value_or(2, Value()));
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : in.iterate(v)) {
    std::vector<Value> key;
    for (const Value& path : paths) {
      const Value part = follow(in, item, path);
      key.push_back(p.flag(1, false) ? part : without_case(part));
    }
    keyed.emplace_back(Value::list(std::move(key)), item);
  }
  sort_by(keyed, p.flag(0, false));
  std::vector<Value> out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return in.list(std::move(out));
}

Value dictsort(Interpreter& in, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter dictsort", {"case_sensitive", "by", "reverse"});
  if (!v.is_mapping())
    throw TemplateError(fmt::format("the filter dictsort needs a dict, not {}", v.type_name()));
  const std::string by = p.has(1) ? p.text(1) : "key";
  if (by != "key" && by != "value")
    throw TemplateError("the filter dictsort: `by` must be \"key\" or \"value\"");
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : v.as_mapping().items()) {
    const Value& sorted = by == "key" ? key : value;
    keyed.emplace_back(p.flag(0, false) ? sorted : without_case(sorted), Value::tuple({key, value}));
  }
  sort_by(keyed, p.flag(2, false));
  std::vector<Value> out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return in.list(std::move(out));
}

Value unique(Interpreter& in, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter unique", {"case_sensitive", "attribute"});
  Mapping seen;
  std::vector<Value> out;
  for (const Value& item : in.iterate(v)) {
    const Value key = follow(in, item, p.value_or(1, Value()));
    const Value compared = p.flag(0, false) ? key : without_case(key);
    if (seen.find(compared) != nullptr) continue;
    seen.set(compared, Value());
    out.push_back(item);
  }
  return Value::generator(std::move(out));
}

template <bool largest>
Value extreme(Interpreter& in, const Value& v, Arguments& a) {
  const Parameters p(a, largest ? "the filter max" : "the filter min", {"case_sensitive", "attribute"});
  const std::vector<Value> all = in.iterate(v);
  if (all.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const auto key = [&](const Value& item) {
    const Value k = follow(in, item, p.value_or(1, Value()));
    return p.flag(0, false) ? k : without_case(k);
  };
  size_t best = 0;
  Value best_key = key(all[0]);
  for (size_t i = 1; i < all.size(); ++i) {
    Value k = key(all[i]);
    if (!(largest ? less(best_key, k) : less(k, best_key))) continue;
    best = i;
    best_key = std::move(k);
  }
  return all[best];
}

Value sum(Interpreter& in, const Value& v, Arguments& a) {
  const Parameters p(a, "the filter sum", {"attribute", "start"});
  Value total = p.value_or(1, Value(int64_t{0}));
  for (Value& item : in.iterate(v))
    total = binary(in, "+", total, follow(in, std::move(item), p.value_or(0, Value())));
  return total;
}

}  // namespace

FilterFunction find_sequence_filter(std::string_view name) {
  static const std::map<std::string, FilterFunction, std::less<>> table = {
      {"first", first},
      {"last", last},
      {"join", join},
      {"reverse", reverse},
      {"items", items},
      {"map", map},
      {"select", choose<true, false>},
      {"reject", choose<false, false>},
      {"selectattr", choose<true, true>},
      {"rejectattr", choose<false, true>},
      {"sort", sort},
      {"dictsort", dictsort},
      {"unique", unique},
      {"min", extreme<false>},
      {"max", extreme<true>},
      {"sum", sum},
      {"list", [](Interpreter& in, const Value& v, Arguments&) { return in.list(in.iterate(v)); }},
  };
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace ostro::chat::jinja
