// Evaluates expressions. Statements are in interpreter.cc.
#include <fmt/core.h>

#include <utility>

#include "ostro/chat/run/depth.h"
#include "ostro/chat/run/interpreter.h"
#include "ostro/chat/value/text.h"

namespace ostro::chat::jinja {

Value Interpreter::text(std::string bytes) {
  charge(bytes.size());
  return Value(std::move(bytes));
}

Value Interpreter::list(std::vector<Value> items) {
  charge(items.size() * sizeof(Value));
  return Value::list(std::move(items));
}

// From the innermost scope outwards, then the variables of the rendering, then the global functions. An
// unknown name is a value of its own, which is an error only where it is used.
Value Interpreter::lookup(const std::string& name, Scope& scope) {
  for (Scope* s = &scope; s != nullptr; s = s->parent)
    if (const Value* value = s->find(name)) return *value;
  if (const Value* value = context_.find(name)) return *value;
  if (auto function = global_function(options_, name)) return std::move(*function);
  if (name == "strftime_now")
    return Value::undefined(
        "'strftime_now' is undefined: what it gives would depend on the day; write the date into the "
        "template, or give it to the rows in chat_template_kwargs");
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Value Interpreter::evaluate(const Expr& e, Scope& scope) {
  const DepthGuard guard(depth_);
  try {
    step();
    return evaluate_here(e, scope);
  } catch (TemplateError& error) {
    if (error.line == 0) error.line = e.line;
    throw;
  }
}

Value Interpreter::evaluate_here(const Expr& e, Scope& scope) {
  const auto child = [&](size_t i) { return evaluate(*e.children[i], scope); };
  const auto all = [&] {
    std::vector<Value> items;
    items.reserve(e.children.size());
    for (const ExprPtr& c : e.children) items.push_back(evaluate(*c, scope));
    charge(items.size() * sizeof(Value));
    return items;
  };
  switch (e.kind) {
    case ExprKind::kConst: return e.value;
    case ExprKind::kName: return lookup(e.name, scope);
    case ExprKind::kList: return Value::list(all());
    case ExprKind::kTuple: return Value::tuple(all());
    case ExprKind::kDict: {
      auto out = std::make_shared<Mapping>();
      for (size_t i = 0; i < e.children.size(); i += 2) {
        const Value key = child(i);
        out->set(key, child(i + 1));
      }
      charge(out->size() * 4 * sizeof(Value));
      return Value(std::shared_ptr<const Mapping>(std::move(out)));
    }
    case ExprKind::kAttribute: return attribute(child(0), e.name);
    case ExprKind::kItem: {
      const Value object = child(0);
      const Expr& key = *e.children[1];
      if (key.kind != ExprKind::kSlice) return item(object, evaluate(key, scope));
      Value parts[3];
      for (size_t i = 0; i < 3; ++i)
        if (key.children[i]) parts[i] = evaluate(*key.children[i], scope);
      return slice(*this, object, parts[0], parts[1], parts[2]);
    }
    case ExprKind::kSlice: break;
    case ExprKind::kCall: {
      const Value callee = child(0);
      Arguments given = arguments(e.arguments, scope);
      return call(callee, given);
    }
    case ExprKind::kFilter: return filters(e, Value(), scope);
    case ExprKind::kTest: {
      const Value input = child(0);
      Arguments given = arguments(e.arguments, scope);
      return Value(test(e.name, input, given));
    }
    case ExprKind::kNot: return Value(!child(0).truthy());
    case ExprKind::kAnd: {
      Value left = child(0);
      return left.truthy() ? child(1) : left;
    }
    case ExprKind::kOr: {
      Value left = child(0);
      return left.truthy() ? left : child(1);
    }
    case ExprKind::kNegative: return negative(child(0), false);
    case ExprKind::kPositive: return negative(child(0), true);
    case ExprKind::kBinary: {
      const Value left = child(0);
      return binary(*this, e.name, left, child(1));
    }
    case ExprKind::kConcat: {
      std::string out;
      for (size_t i = 0; i < e.children.size(); ++i) out += to_text(child(i));
      return text(std::move(out));
    }
    case ExprKind::kCompare: return compare(e, scope);
    case ExprKind::kConditional:
      if (child(0).truthy()) return child(1);
      if (e.children[2]) return child(2);
      return Value::undefined("the inline if expression was false and has no else");
  }
  throw TemplateError("a slice outside [ ]");
}

Value Interpreter::compare(const Expr& e, Scope& scope) {
  Value left = evaluate(*e.children[0], scope);
  for (size_t i = 0; i < e.operators.size(); ++i) {
    Value right = evaluate(*e.children[i + 1], scope);
    const std::string& op = e.operators[i];
    bool holds = false;
    if (op == "==")
      holds = equal(left, right);
    else if (op == "!=")
      holds = !equal(left, right);
    else if (op == "<")
      holds = less(left, right);
    else if (op == ">")
      holds = less(right, left);
    else if (op == "<=")
      holds = less(left, right) || equal(left, right);
    else if (op == ">=")
      holds = less(right, left) || equal(left, right);
    else
      holds = contains(*this, right, left) == (op == "in");
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

// Evaluates a chain of filters. In filter blocks the input of the innermost one is `innermost`.
Value Interpreter::filters(const Expr& e, const Value& innermost, Scope& scope) {
  Value input;
  if (!e.children[0])
    input = innermost;
  else if (e.children[0]->kind == ExprKind::kFilter)
    input = filters(*e.children[0], innermost, scope);
  else
    input = evaluate(*e.children[0], scope);
  Arguments given = arguments(e.arguments, scope);
  return filter(e.name, input, given);
}

Arguments Interpreter::arguments(const ArgumentList& list, Scope& scope) {
  Arguments out;
  for (const ExprPtr& e : list.positional) out.positional.push_back(evaluate(*e, scope));
  if (list.more_positional)
    for (Value& v : iterate(evaluate(*list.more_positional, scope))) out.positional.push_back(std::move(v));
  for (const auto& [name, e] : list.named) out.named.emplace_back(name, evaluate(*e, scope));
  if (list.more_named) {
    const Value more = evaluate(*list.more_named, scope);
    if (!more.is_mapping()) throw TemplateError(fmt::format("** needs a dict, not {}", more.type_name()));
    for (const auto& [key, value] : more.as_mapping().items()) out.named.emplace_back(to_text(key), value);
  }
  return out;
}

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  if (callee.is_callable()) return callee.as_callable().call(*this, arguments);
  if (callee.is_loop() && arguments.positional.size() == 1)
    return callee.as_loop().recurse(arguments.positional[0]);
  if (callee.is_undefined()) throw TemplateError(callee.undefined_message());
  throw TemplateError(fmt::format("'{}' object is not callable", callee.type_name()));
}

Value Interpreter::filter(const std::string& name, const Value& input, Arguments& arguments) {
  const FilterFunction f = find_filter(name);
  if (f == nullptr) throw TemplateError(fmt::format("no filter named '{}' (or it is not supported)", name));
  return f(*this, input, arguments);
}

bool Interpreter::test(const std::string& name, const Value& input, Arguments& arguments) {
  const TestFunction f = find_test(name);
  if (f == nullptr) throw TemplateError(fmt::format("no test named '{}' (or it is not supported)", name));
  return f(*this, input, arguments);
}

std::vector<Value> Interpreter::iterate(const Value& iterable) {
  std::vector<Value> out;
  if (iterable.is_undefined()) return out;
  if (iterable.is_text()) {
    charge(iterable.as_text().size() * 2 * sizeof(Value));  // before the texts are made
    for (std::string& c : characters(iterable.as_text())) out.emplace_back(std::move(c));
  } else if (iterable.is_sequence()) {
    out = iterable.as_sequence().items;
  } else if (iterable.is_mapping()) {
    for (const auto& [key, value] : iterable.as_mapping().items()) out.push_back(key);
  } else if (iterable.is_generator()) {
    Generator& g = iterable.as_generator();
    out.assign(g.items.begin() + static_cast<std::ptrdiff_t>(g.next), g.items.end());
    g.next = g.items.size();
  } else {
    throw TemplateError(fmt::format("'{}' object is not iterable", iterable.type_name()));
  }
  charge(out.size() * sizeof(Value));
  return out;
}

}  // namespace ostro::chat::jinja
