// Executes statements. Expressions are in evaluate.cc.
#include "ostro/chat/run/interpreter.h"

#include <fmt/core.h>

#include <utility>

#include "ostro/chat/run/depth.h"

namespace ostro::chat::jinja {

Value* Scope::find(std::string_view name) {
  for (auto& [key, value] : names)
    if (key == name) return &value;
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  if (Value* there = find(name))
    *there = std::move(value);
  else
    names.emplace_back(name, std::move(value));
}

// Namespaces and loops can refer to themselves through shared pointers; emptying them frees the cycles.
Interpreter::~Interpreter() {
  for (const auto& weak : namespaces_)
    if (const auto space = weak.lock()) space->attributes.clear();
  for (const auto& weak : loops_)
    if (const auto loop = weak.lock()) loop->clear();
}

Rendered Interpreter::run(const Body& body) {
  Rendered out;
  execute(body, scopes_.emplace_back(), out.text);
  out.generations = std::move(generations_);
  return out;
}

void Interpreter::step() {
  if (++steps_ > options_.max_steps)
    throw TemplateError(fmt::format(
        "more than {} steps; the template does not end, or the row is far too long", options_.max_steps));
}

void Interpreter::charge(size_t bytes) {
  bytes_ += bytes;
  if (bytes_ > options_.max_bytes)
    throw TemplateError(fmt::format("makes more than {} bytes of text and lists", options_.max_bytes));
}

Scope& Interpreter::new_scope(Scope& parent) {
  charge(sizeof(Scope));
  return scopes_.emplace_back(Scope{&parent, {}});
}

Interpreter::Flow Interpreter::execute(const Body& body, Scope& scope, std::string& out) {
  for (const auto& s : body) {
    const Flow flow = execute(*s, scope, out);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const Stmt& s, Scope& scope, std::string& out) {
  const DepthGuard guard(depth_);
  try {
    step();
    switch (s.kind) {
      case StmtKind::kText: {
        charge(s.name.size());
        out += s.name;
        break;
      }
      case StmtKind::kPrint: {
        const Value value = evaluate(*s.expr, scope);
        if (options_.strict_undefined && value.is_undefined()) throw TemplateError(value.undefined_message());
        const std::string text = to_text(value);
        charge(text.size());
        out += text;
        break;
      }
      case StmtKind::kIf:
        return execute(evaluate(*s.expr, scope).truthy() ? s.body : s.otherwise, scope, out);
      case StmtKind::kFor: loop(s, evaluate(*s.expr, scope), scope, out, 0); break;
      case StmtKind::kSet: assign(s.target, evaluate(*s.expr, scope), scope); break;
      case StmtKind::kSetBlock:
      case StmtKind::kFilter: {
        std::string inside;
        const Flow flow = execute(s.body, new_scope(scope), inside);
        if (flow != Flow::kNormal) return flow;
        const Value value =
            s.expr ? filters(*s.expr, Value(std::move(inside)), scope) : Value(std::move(inside));
        if (s.kind == StmtKind::kSetBlock)
          assign(s.target, value, scope);
        else
          out += to_text(value);
        break;
      }
      case StmtKind::kMacro: scope.set(s.name, macro(s, scope, s.name)); break;
      case StmtKind::kCall: {
        auto call_arguments = arguments(s.expr->arguments, scope);
        call_arguments.named.emplace_back("caller", macro(s, scope, "caller"));
        out += to_text(call(evaluate(*s.expr->children[0], scope), call_arguments));
        break;
      }
      case StmtKind::kWith: {
        Scope& inner = new_scope(scope);
        std::vector<Value> values;  // a value cannot use the names set before it
        for (const ExprPtr& e : s.values) values.push_back(evaluate(*e, scope));
        for (size_t i = 0; i < values.size(); ++i) assign(s.targets[i], values[i], inner);
        return execute(s.body, inner, out);
      }
      case StmtKind::kGeneration: {
        const size_t begin = out.size();
        execute(s.body, new_scope(scope), out);
        generations_.emplace_back(begin, out.size());
        break;
      }
      case StmtKind::kBreak: return Flow::kBreak;
      case StmtKind::kContinue: return Flow::kContinue;
    }
  } catch (TemplateError& e) {
    if (e.line == 0) e.line = s.line;
    throw;
  }
  return Flow::kNormal;
}

// Items come through a chain of functions: from the generator or list, then through the loop's `if`, then
// through Loop, which may look ahead for loop.last or loop.length. Each iteration clears the inner scope, so
// names set in one are unknown in the next.
void Interpreter::loop(const Stmt& s, const Value& iterable, Scope& scope, std::string& out, int64_t depth0) {
  Scope& inner = new_scope(scope);
  Scope* tested = s.condition ? &new_scope(scope) : nullptr;
  // Gives the items one at a time. A generator is consumed only as far as the loop runs.
  Loop::Next next;
  if (iterable.is_generator()) {
    next = [generator = iterable](Value& item) {
      Generator& g = generator.as_generator();
      if (g.next == g.items.size()) return false;
      item = g.items[g.next++];
      return true;
    };
  } else {
    next = [items = iterate(iterable), at = size_t{0}](Value& item) mutable {
      if (at == items.size()) return false;
      item = items[at++];
      return true;
    };
  }
  if (tested != nullptr) {
    next = [this, &s, tested, all = std::move(next)](Value& item) {
      while (all(item)) {
        tested->names.clear();
        assign(s.target, item, *tested);
        if (evaluate(*s.condition, *tested).truthy()) return true;
      }
      return false;
    };
  }
  Loop::Recurse recurse;
  if (s.recursive)
    recurse = [this, &s, &scope, depth0](const Value& items) {
      std::string text;
      loop(s, items, scope, text, depth0 + 1);
      return Value(std::move(text));
    };
  const auto loop = std::make_shared<Loop>(std::move(next), depth0, std::move(recurse));
  loops_.push_back(loop);
  bool finished_one = false;  // jinja2 runs `else` when no iteration was completed
  Value item;
  while (loop->advance(item)) {
    step();
    inner.names.clear();
    inner.set("loop", Value(loop));
    assign(s.target, item, inner);
    const Flow flow = execute(s.body, inner, out);
    if (flow == Flow::kBreak) break;
    finished_one = finished_one || flow == Flow::kNormal;
  }
  if (!finished_one && !s.otherwise.empty()) execute(s.otherwise, new_scope(scope), out);
}

void Interpreter::assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.parts.empty()) {
    const std::vector<Value> items = iterate(value);
    if (items.size() != target.parts.size())
      throw TemplateError(fmt::format("{} names for {} values", target.parts.size(), items.size()));
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], scope);
    return;
  }
  if (target.attribute.empty()) {
    scope.set(target.name, value);
    return;
  }
  const Value space = lookup(target.name, scope);
  if (!space.is_namespace())
    throw TemplateError(fmt::format("cannot set an attribute of {}, which is not a namespace", target.name));
  set_attribute(space.as_namespace(), target.attribute, value);
}

void set_attribute(Namespace& space, std::string_view name, Value value) {
  if (name.starts_with('_'))
    throw TemplateError(
        fmt::format("a namespace cannot hold '{}': names that begin with _ are refused", name));
  for (auto& [key, held] : space.attributes)
    if (key == name) {
      held = std::move(value);
      return;
    }
  space.attributes.emplace_back(name, std::move(value));
}

Value Interpreter::make_namespace(Arguments& arguments) {
  const auto space = std::make_shared<Namespace>();
  namespaces_.push_back(space);
  for (const Value& from : arguments.positional) {
    if (!from.is_mapping())
      throw TemplateError(fmt::format("namespace() takes a dict, not {}", from.type_name()));
    for (const auto& [key, value] : from.as_mapping().items()) set_attribute(*space, to_text(key), value);
  }
  for (auto& [name, value] : arguments.named) set_attribute(*space, name, std::move(value));
  return Value(space);
}

Value Interpreter::macro(const Stmt& s, Scope& scope, std::string name) {
  return Value(Callable{name, [&s, &scope, name](Interpreter& in, Arguments& arguments) {
                          return in.call_macro(s, scope, name, arguments);
                        }});
}

// Positional arguments first, then named ones; others go to varargs, kwargs or caller if the body reads those
// names, and are errors if it does not.
Value Interpreter::call_macro(const Stmt& s, Scope& scope, const std::string& name, Arguments& arguments) {
  Scope& inner = new_scope(scope);
  const size_t given = arguments.positional.size(), wanted = s.parameters.size();
  if (given > wanted && !s.reads_varargs)
    throw TemplateError(
        fmt::format("macro '{}' takes not more than {} arguments, {} were given", name, wanted, given));
  std::vector<const Value*> values(wanted, nullptr);
  for (size_t i = 0; i < std::min(given, wanted); ++i) values[i] = &arguments.positional[i];
  auto rest = std::make_shared<Mapping>();
  Value caller = Value::undefined("no caller: the macro was not called by {% call %}");
  for (auto& [key, value] : arguments.named) {
    size_t i = 0;
    while (i < wanted && s.parameters[i] != key) ++i;
    if (i < wanted && values[i] != nullptr)
      throw TemplateError(fmt::format("macro '{}' got '{}' twice", name, key));
    if (i < wanted)
      values[i] = &value;
    else if (key == "caller" && s.reads_caller)
      caller = value;
    else if (s.reads_kwargs)
      rest->set(key, value);
    else
      throw TemplateError(fmt::format("macro '{}' has no parameter '{}'", name, key));
  }
  // A default may use other parameters. Its own, and later ones that were not given, are undefined there.
  for (size_t i = 0; i < wanted; ++i)
    inner.set(s.parameters[i],
              values[i] != nullptr
                  ? *values[i]
                  : Value::undefined(fmt::format("parameter '{}' was not provided", s.parameters[i])));
  for (size_t i = 0; i < wanted; ++i)
    if (values[i] == nullptr && s.values[i]) inner.set(s.parameters[i], evaluate(*s.values[i], inner));
  if (s.reads_caller) inner.set("caller", caller);
  if (s.reads_kwargs) inner.set("kwargs", Value(std::shared_ptr<const Mapping>(rest)));
  if (s.reads_varargs) {
    std::vector<Value> more;
    for (size_t i = wanted; i < given; ++i) more.push_back(arguments.positional[i]);
    inner.set("varargs", Value::tuple(std::move(more)));
  }
  std::string out;
  execute(s.body, inner, out);
  return Value(std::move(out));
}

}  // namespace ostro::chat::jinja
