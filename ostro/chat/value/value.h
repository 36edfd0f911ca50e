// Value: the values of templates. They behave like Python's, as far as chat templates can see a difference.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ostro::chat::jinja {

class Interpreter;
class Loop;
class Mapping;
class Value;

// The template cannot be parsed or rendered. Only thrown inside ostro/chat; Template turns it into an Error.
// `line` 0 stands for the line of the expression or statement that is being evaluated.
class TemplateError : public std::runtime_error {
 public:
  explicit TemplateError(const std::string& message, int at_line = 0)
      : std::runtime_error(message), line(at_line) {}
  int line;
};

// The value of a missing name or key. It prints as nothing, is false and is empty. Any other use is an error
// with this message.
struct Undefined {
  std::string message;  // "'tools' is undefined"
};

struct Text {
  std::string bytes;    // UTF-8
  bool markup = false;  // made by the filter `safe`; jinja2 escapes what `+` adds to it
};

// Containers. They never change after they were made; the sandbox forbids it.
enum class SequenceKind { kList, kTuple, kRange, kKeys, kValues, kItems };
struct Sequence {
  SequenceKind kind = SequenceKind::kList;
  std::vector<Value> items;
};

// The result of map, select, reverse and others. It is true even when empty, has no length, and can be
// iterated only once.
struct Generator {
  std::vector<Value> items;
  size_t next = 0;
};

// The object that namespace() makes: the only one whose attributes templates may set.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

// The arguments of a call, filter or test, already evaluated.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// A function: built in, a macro, or a method bound to its object.
struct Callable {
  std::string name;
  std::function<Value(Interpreter&, Arguments&)> call;
};

// A value of one of the types below. Copies are cheap and share texts and containers. The as_ functions need
// a value of their type. Not thread-safe where generators, namespaces or loops are shared.
class Value {
 public:
  Value() : v_(nullptr) {}     // None
  Value(bool v) : v_(v) {}     // NOLINT(google-explicit-constructor) as are the other values of JSON
  Value(int64_t v) : v_(v) {}  // NOLINT
  Value(double v) : v_(v) {}   // NOLINT
  Value(std::string v) : v_(std::make_shared<const Text>(Text{std::move(v), false})) {}  // NOLINT
  Value(std::string_view v) : Value(std::string(v)) {}                                   // NOLINT
  Value(const char* v) : Value(std::string(v)) {}                                        // NOLINT
  Value(std::shared_ptr<const Mapping> v) : v_(std::move(v)) {}                          // NOLINT
  Value(std::shared_ptr<Generator> v) : v_(std::move(v)) {}                              // NOLINT
  Value(std::shared_ptr<Namespace> v) : v_(std::move(v)) {}                              // NOLINT
  Value(std::shared_ptr<Loop> v) : v_(std::move(v)) {}                                   // NOLINT
  Value(Callable v) : v_(std::make_shared<const Callable>(std::move(v))) {}              // NOLINT
  static Value undefined(std::string message);
  static Value markup(std::string bytes);
  static Value sequence(SequenceKind kind, std::vector<Value> items);
  static Value list(std::vector<Value> items) { return sequence(SequenceKind::kList, std::move(items)); }
  static Value tuple(std::vector<Value> items) { return sequence(SequenceKind::kTuple, std::move(items)); }
  static Value generator(std::vector<Value> items);

  bool is_undefined() const { return holds<std::shared_ptr<const Undefined>>(); }
  bool is_none() const { return holds<std::nullptr_t>(); }
  bool is_bool() const { return holds<bool>(); }
  bool is_int() const { return holds<int64_t>(); }
  bool is_float() const { return holds<double>(); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_text() const { return holds<std::shared_ptr<const Text>>(); }
  bool is_sequence(SequenceKind kind) const { return is_sequence() && as_sequence().kind == kind; }
  bool is_sequence() const { return holds<std::shared_ptr<const Sequence>>(); }
  bool is_generator() const { return holds<std::shared_ptr<Generator>>(); }
  bool is_mapping() const { return holds<std::shared_ptr<const Mapping>>(); }
  bool is_namespace() const { return holds<std::shared_ptr<Namespace>>(); }
  bool is_loop() const { return holds<std::shared_ptr<Loop>>(); }
  bool is_callable() const { return holds<std::shared_ptr<const Callable>>(); }
  bool is_markup() const { return is_text() && get<std::shared_ptr<const Text>>()->markup; }

  bool as_bool() const { return get<bool>(); }
  int64_t as_int() const { return is_bool() ? (as_bool() ? 1 : 0) : get<int64_t>(); }  // of a bool or int
  double as_double() const { return is_float() ? get<double>() : static_cast<double>(as_int()); }
  const std::string& as_text() const { return get<std::shared_ptr<const Text>>()->bytes; }
  const std::string& undefined_message() const { return get<std::shared_ptr<const Undefined>>()->message; }
  const Sequence& as_sequence() const { return *get<std::shared_ptr<const Sequence>>(); }
  Generator& as_generator() const { return *get<std::shared_ptr<Generator>>(); }
  const Mapping& as_mapping() const { return *get<std::shared_ptr<const Mapping>>(); }
  Namespace& as_namespace() const { return *get<std::shared_ptr<Namespace>>(); }
  Loop& as_loop() const { return *get<std::shared_ptr<Loop>>(); }
  const Callable& as_callable() const { return *get<std::shared_ptr<const Callable>>(); }

  // As in Python: bool(v), type(v).__name__ (e.g. "str"), `is`.
  bool truthy() const;
  const char* type_name() const;
  bool same_object(const Value& other) const;

 private:
  template <typename T>
  bool holds() const {
    return std::holds_alternative<T>(v_);
  }
  template <typename T>
  const T& get() const {
    return std::get<T>(v_);
  }
  std::variant<std::nullptr_t, bool, int64_t, double, std::shared_ptr<const Text>,
               std::shared_ptr<const Sequence>, std::shared_ptr<const Mapping>, std::shared_ptr<Generator>,
               std::shared_ptr<Namespace>, std::shared_ptr<const Callable>, std::shared_ptr<Loop>,
               std::shared_ptr<const Undefined>>
      v_;
};

// Python's ==, and < (TemplateError for types without an order).
bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);

// Python's str(v) and repr(v).
std::string to_text(const Value& value);
std::string to_repr(const Value& value);
std::string repr_of_text(std::string_view text);
std::string repr_of_double(double value);

}  // namespace ostro::chat::jinja
