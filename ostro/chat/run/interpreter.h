// Interpreter: evaluates a parsed template as jinja2 does in the sandbox of transformers. Templates come with
// tokenizers, so they are untrusted code; their steps, memory and depth are limited. Errors are thrown as
// TemplateError.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/chat/parse/ast.h"
#include "ostro/chat/run/loop.h"
#include "ostro/chat/run/template.h"
#include "ostro/chat/value/mapping.h"
#include "ostro/chat/value/value.h"

namespace ostro::chat::jinja {

// The variables of a block. Other names are looked up in `parent`.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string, Value>> names;

  Value* find(std::string_view name);  // in this scope only
  void set(std::string_view name, Value value);
};

// One rendering of one template; `context` and `options` must outlive it. Not thread-safe.
class Interpreter {
 public:
  Interpreter(const Mapping& context, const RenderOptions& options) : context_(context), options_(options) {}
  ~Interpreter();

  // Executes a template. Call it once.
  Rendered run(const Body& body);

  // The following functions are for filters, tests and functions of templates.
  void step();                     // counts one step of RenderOptions::max_steps
  void charge(size_t bytes);       // counts new memory against RenderOptions::max_bytes
  Value text(std::string bytes);   // makes a text, and charges it
  Value list(std::vector<Value>);  // makes a list, and charges it
  const RenderOptions& options() const { return options_; }
  Value call(const Value& callee, Arguments& arguments);
  Value filter(const std::string& name, const Value& input, Arguments& arguments);
  bool test(const std::string& name, const Value& input, Arguments& arguments);
  Value attribute(const Value& object, std::string_view name);  // object.name
  Value item(const Value& object, const Value& key);            // object[key]
  std::vector<Value> iterate(const Value& iterable);            // Python's list(iterable)
  Value make_namespace(Arguments& arguments);

 private:
  enum class Flow { kNormal, kBreak, kContinue };

  Flow execute(const Body& body, Scope& scope, std::string& out);
  Flow execute(const Stmt& s, Scope& scope, std::string& out);
  void loop(const Stmt& s, const Value& iterable, Scope& scope, std::string& out, int64_t depth0);
  void assign(const Target& target, const Value& value, Scope& scope);
  Value macro(const Stmt& s, Scope& scope, std::string name);
  Value call_macro(const Stmt& s, Scope& scope, const std::string& name, Arguments& arguments);

  Value evaluate(const Expr& e, Scope& scope);
  Value evaluate_here(const Expr& e, Scope& scope);
  Value lookup(const std::string& name, Scope& scope);
  Value compare(const Expr& e, Scope& scope);
  Value filters(const Expr& e, const Value& innermost, Scope& scope);
  Arguments arguments(const ArgumentList& list, Scope& scope);
  Scope& new_scope(Scope& parent);

  const Mapping& context_;
  const RenderOptions& options_;
  std::deque<Scope> scopes_;                          // kept until the end, since macros point to them
  std::vector<std::weak_ptr<Namespace>> namespaces_;  // emptied at the end: they and
  std::vector<std::weak_ptr<Loop>> loops_;            // loops can hold each other
  std::vector<std::pair<size_t, size_t>> generations_;
  int64_t steps_ = 0;
  size_t bytes_ = 0;
  int depth_ = 0;
};

// Sets an attribute of a namespace. Names that begin with _ are refused, as in transformers.
void set_attribute(Namespace& space, std::string_view name, Value value);

// Python's operators (operators.cc).
Value binary(Interpreter& in, const std::string& op, const Value& a, const Value& b);
Value negative(const Value& value, bool plus);
bool contains(Interpreter& in, const Value& container, const Value& item);
Value slice(Interpreter& in, const Value& object, const Value& start, const Value& stop, const Value& step);
// `format % arguments`.
Value percent_format(Interpreter& in, const std::string& format, const Value& arguments);

// The method `name` of a value, bound to the value. Nothing when it has no such method (methods.cc).
std::optional<Value> method(const Value& object, std::string_view name);

// The global functions: range, dict, namespace, raise_exception, strftime_now ... (functions.cc).
std::optional<Value> global_function(const RenderOptions& options, std::string_view name);

// Look up a filter or test by name (filters.cc, tests.cc). Null when there is none. find_filter also looks
// among the filters over sequences (sequence_filters.cc).
using FilterFunction = Value (*)(Interpreter&, const Value&, Arguments&);
using TestFunction = bool (*)(Interpreter&, const Value&, Arguments&);
FilterFunction find_filter(std::string_view name);
FilterFunction find_sequence_filter(std::string_view name);
TestFunction find_test(std::string_view name);

}  // namespace ostro::chat::jinja
