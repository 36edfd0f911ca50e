// The global functions of chat templates.
#include <fmt/core.h>

#include <map>

#include "ostro/chat/run/format.h"
#include "ostro/chat/run/interpreter.h"
#include "ostro/chat/run/parameters.h"

namespace ostro::chat::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;  // as in jinja2's sandbox

Value range(Interpreter& in, Arguments& a) {
  const Parameters p(a, "range()", {"start", "stop", "step"}, 1);
  const int64_t start = p.has(1) ? p.integer(0) : 0, stop = p.has(1) ? p.integer(1) : p.integer(0);
  const int64_t step = p.integer_or(2, 1);
  if (step == 0) throw TemplateError("range() arg 3 must not be zero");
  std::vector<Value> out;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(out.size()) == kMaxRange)
      throw TemplateError(fmt::format("range() of more than {} numbers", kMaxRange));
    out.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  in.charge(out.size() * sizeof(Value));
  return Value::sequence(SequenceKind::kRange, std::move(out));
}

Value dict(Interpreter& in, Arguments& a) {
  auto out = std::make_shared<Mapping>();
  if (a.positional.size() > 1) throw TemplateError("dict() takes at most one argument without a name");
  for (const Value& from : a.positional) {
    if (from.is_mapping()) {
      for (const auto& [key, value] : from.as_mapping().items()) out->set(key, value);
      continue;
    }
    for (const Value& pair : in.iterate(from)) {
      const std::vector<Value> both = in.iterate(pair);
      if (both.size() != 2) throw TemplateError("dict() takes a dict, or pairs of key and value");
      out->set(both[0], both[1]);
    }
  }
  for (auto& [name, value] : a.named) out->set(name, std::move(value));
  in.charge(out->size() * 4 * sizeof(Value));
  return Value(std::shared_ptr<const Mapping>(std::move(out)));
}

Value raise_exception(Interpreter&, Arguments& a) {
  const Parameters p(a, "raise_exception()", {"message"}, 1);
  throw TemplateError("the template says: " + to_text(p.value(0)));
}

Value strftime_now(Interpreter& in, Arguments& a) {
  const Parameters p(a, "strftime_now()", {"format"}, 1);
  return in.text(format_time(p.text(0), *in.options().now));
}

Value make_namespace(Interpreter& in, Arguments& a) { return in.make_namespace(a); }

}  // namespace

bool is_function_name(std::string_view name) {
  RenderOptions all;
  all.now = 0;
  return global_function(all, name).has_value();
}

std::optional<Value> global_function(const RenderOptions& options, std::string_view name) {
  using Function = Value (*)(Interpreter&, Arguments&);
  static const std::map<std::string, Function, std::less<>> table = {
      {"range", range},
      {"dict", dict},
      {"namespace", make_namespace},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
  };
  const auto found = table.find(name);
  if (found == table.end() || (found->second == strftime_now && !options.now)) return std::nullopt;
  return Value(Callable{std::string(name), found->second});
}

}  // namespace ostro::chat::jinja
