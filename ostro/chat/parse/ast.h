// Expr, Stmt: the syntax tree of a parsed template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/chat/value/value.h"

namespace ostro::chat::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

// The arguments of a call, filter or test in the source: f(a, b=c, *d, **e).
struct ArgumentList {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional, more_named;
};

enum class ExprKind {
  kConst,
  kName,
  kList,
  kTuple,
  kDict,       // children: key, value, key, value ...
  kAttribute,  // children[0].name
  kItem,       // children[0][children[1]]
  kSlice,      // children[0..2], each may be null; only as a child of kItem
  kCall,       // children[0](arguments)
  kFilter,     // children[0] | name(arguments); in a filter block there is no child
  kTest,       // children[0] is name(arguments)
  kNot,
  kAnd,
  kOr,
  kNegative,
  kPositive,
  kBinary,      // name: + - * / // % **
  kConcat,      // a ~ b ~ c
  kCompare,     // children, with `operators` between them
  kConditional  // children: condition, then, else (may be null)
};

// An expression. The fields that a kind uses are in the comments of ExprKind.
struct Expr {
  ExprKind kind;
  int line;
  int depth = 1;  // height of the tree from here
  std::string name;
  Value value;
  std::vector<ExprPtr> children;
  ArgumentList arguments;
  std::vector<std::string> operators;  // for kCompare: == != < <= > >= in, not in
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

// The target of an assignment: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  std::string name, attribute;
  std::vector<Target> parts;
};

enum class StmtKind {
  kText,
  kPrint,     // expr
  kIf,        // expr, body, otherwise
  kFor,       // target in expr if condition: body, otherwise
  kSet,       // target = expr
  kSetBlock,  // target = body, through the filters in expr
  kMacro,     // name(parameters): body
  kCall,      // calls expr; the macro can call body as caller(parameters)
  kFilter,    // prints body after the filters in expr
  kWith,      // body, with targets = values
  kGeneration,
  kBreak,
  kContinue,
};

// A statement. The fields that a kind uses are in the comments of StmtKind.
struct Stmt {
  StmtKind kind;
  int line;
  std::string name;  // the macro's name; for kText the text
  ExprPtr expr, condition;
  Target target;
  std::vector<Target> targets;
  std::vector<ExprPtr>
      values;  // for kWith; for kMacro and kCall the defaults of the parameters, null if there is none
  std::vector<std::string> parameters;
  bool recursive = false;                            // a for loop whose body may call loop(...)
  bool reads_varargs = false, reads_kwargs = false;  // a macro whose body uses the names varargs, kwargs
  bool reads_caller = false;
  Body body, otherwise;
};

}  // namespace ostro::chat::jinja
