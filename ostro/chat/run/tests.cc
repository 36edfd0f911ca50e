// The tests: the names after `is`.
#include <fmt/core.h>

#include <map>

#include "ostro/chat/run/interpreter.h"
#include "ostro/chat/run/parameters.h"
#include "ostro/chat/value/text.h"

namespace ostro::chat::jinja {
namespace {

const Value& other(const Arguments& a) {
  const Parameters p(a, "this test", {"other"}, 1);
  return p.value(0);
}

int64_t whole(Interpreter& in, const Value& v, int64_t by) {
  const Value rest = binary(in, "%", v, Value(by));
  return rest.is_float() ? (rest.as_double() == 0 ? 0 : rest.as_double() == 1 ? 1 : -1) : rest.as_int();
}

bool is_iterable(const Value& v) {
  return v.is_undefined() || v.is_text() || v.is_sequence() || v.is_mapping() || v.is_generator() ||
         v.is_loop();
}

}  // namespace

TestFunction find_test(std::string_view name) {
  using V = const Value&;
  using A = Arguments&;
  using I = Interpreter&;
  static const TestFunction equal_to = [](I, V v, A a) { return equal(v, other(a)); };
  static const TestFunction not_equal = [](I, V v, A a) { return !equal(v, other(a)); };
  static const TestFunction greater = [](I, V v, A a) { return less(other(a), v); };
  static const TestFunction smaller = [](I, V v, A a) { return less(v, other(a)); };
  static const TestFunction at_least = [](I, V v, A a) { return less(other(a), v) || equal(v, other(a)); };
  static const TestFunction at_most = [](I, V v, A a) { return less(v, other(a)) || equal(v, other(a)); };
  static const std::map<std::string, TestFunction, std::less<>> table = {
      {"defined", [](I, V v, A) { return !v.is_undefined(); }},
      {"undefined", [](I, V v, A) { return v.is_undefined(); }},
      {"none", [](I, V v, A) { return v.is_none(); }},
      {"boolean", [](I, V v, A) { return v.is_bool(); }},
      {"true", [](I, V v, A) { return v.is_bool() && v.as_bool(); }},
      {"false", [](I, V v, A) { return v.is_bool() && !v.as_bool(); }},
      {"integer", [](I, V v, A) { return v.is_int(); }},
      {"float", [](I, V v, A) { return v.is_float(); }},
      {"number", [](I, V v, A) { return v.is_number(); }},
      {"string", [](I, V v, A) { return v.is_text(); }},
      {"mapping", [](I, V v, A) { return v.is_mapping(); }},
      {"iterable", [](I, V v, A) { return is_iterable(v); }},
      {"sequence",
       [](I, V v, A) {
         return v.is_text() || v.is_mapping() || v.is_sequence(SequenceKind::kList) ||
                v.is_sequence(SequenceKind::kTuple) || v.is_sequence(SequenceKind::kRange);
       }},
      {"callable", [](I, V v, A) { return v.is_callable() || v.is_undefined() || v.is_loop(); }},
      {"escaped", [](I, V v, A) { return v.is_markup(); }},
      {"lower", [](I, V v, A) { return has_case(to_text(v), false); }},
      {"upper", [](I, V v, A) { return has_case(to_text(v), true); }},
      {"odd", [](I in, V v, A) { return whole(in, v, 2) == 1; }},
      {"even", [](I in, V v, A) { return whole(in, v, 2) == 0; }},
      {"divisibleby",
       [](I in, V v, A a) {
         const Value rest = binary(in, "%", v, other(a));
         return rest.as_double() == 0;
       }},
      {"sameas",
       [](I, V v, A a) {
         return v.same_object(other(a)) || (v.is_text() && other(a).is_text() && equal(v, other(a)));
       }},
      {"in", [](I in, V v, A a) { return contains(in, other(a), v); }},
      {"filter", [](I, V v, A) { return find_filter(to_text(v)) != nullptr; }},
      {"test", [](I, V v, A) { return find_test(to_text(v)) != nullptr; }},
      {"eq", equal_to},
      {"==", equal_to},
      {"equalto", equal_to},
      {"ne", not_equal},
      {"!=", not_equal},
      {"gt", greater},
      {">", greater},
      {"greaterthan", greater},
      {"lt", smaller},
      {"<", smaller},
      {"lessthan", smaller},
      {"ge", at_least},
      {">=", at_least},
      {"le", at_most},
      {"<=", at_most},
  };
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace ostro::chat::jinja
