#include "ostro/chat/parse/parser.h"

#include <fmt/core.h>

#include <initializer_list>
#include <string>

#include "ostro/chat/parse/expression_parser.h"
#include "ostro/chat/parse/lexer.h"

namespace ostro::chat::jinja {
namespace {

// The surroundings of the statements that are being parsed.
struct Place {
  bool in_loop = false;          // break and continue are allowed
  const char* buffer = nullptr;  // the enclosing block whose text is captured before it is printed
};

class Parser {
 public:
  explicit Parser(std::string_view source) : in_(lex(source)) {}

  ParsedTemplate run() {
    out_.body = statements({}, Place{}, "", 0);
    return std::move(out_);
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  // Parses statements up to a tag named in `ends`, which becomes the current token, or up to the end of the
  // template.
  Body statements(Ends ends, Place place, std::string_view of, int line) {
    const ExpressionParser::Nesting nesting(in_);
    Body body;
    while (true) {
      const Token& token = in_.current();
      if (token.kind == TokenKind::kEnd) {
        if (ends.size() > 0)
          throw TemplateError(fmt::format("{{% {} %}} without its {{% {} %}}", of, *(ends.end() - 1)), line);
        return body;
      }
      if (token.kind == TokenKind::kData) {
        Stmt& s = add(body, StmtKind::kText);
        s.name = token.text;
        in_.advance();
      } else if (token.kind == TokenKind::kVariableBegin) {
        in_.advance();
        Stmt& s = add(body, StmtKind::kPrint);
        s.expr = in_.tuple();
        in_.expect(TokenKind::kVariableEnd, "'}}'");
      } else {
        in_.expect(TokenKind::kBlockBegin, "'{%'");
        for (const std::string_view end : ends)
          if (in_.current().is_name(end)) return body;
        statement(body, place);
        in_.expect(TokenKind::kBlockEnd, "'%}'");
      }
    }
  }

  // Parses the body of a tag: from its %} to a tag in `ends`.
  Body block(Ends ends, Place place, std::string_view of, int line) {
    in_.skip_operator(":");
    in_.expect(TokenKind::kBlockEnd, "'%}'");
    return statements(ends, place, of, line);
  }
  Body whole_block(std::string_view end, Place place, std::string_view of, int line) {
    Body body = block({end}, place, of, line);
    in_.advance();
    return body;
  }

  Stmt& add(Body& body, StmtKind kind) {
    auto s = std::make_unique<Stmt>();
    s->kind = kind;
    s->line = in_.current().line;
    body.push_back(std::move(s));
    return *body.back();
  }

  void statement(Body& body, Place place) {
    const int line = in_.current().line;
    if (in_.current().kind != TokenKind::kName)
      in_.fail(fmt::format("expected the name of a tag, found {}", describe(in_.current())));
    const std::string tag = in_.take_name();
    if (tag == "if") return if_statement(add(body, StmtKind::kIf), place, tag, line);
    if (tag == "for") return for_statement(add(body, StmtKind::kFor), place, line);
    if (tag == "set") return set_statement(body, place, line);
    if (tag == "macro") return macro(add(body, StmtKind::kMacro), line);
    if (tag == "call") return call_block(add(body, StmtKind::kCall), line);
    if (tag == "filter") {
      Stmt& s = add(body, StmtKind::kFilter);
      s.expr = in_.filters(nullptr, true);
      s.body = whole_block("endfilter", {place.in_loop, "a filter block"}, tag, line);
    } else if (tag == "with") {
      with(add(body, StmtKind::kWith), place, line);
    } else if (tag == "generation") {
      if (place.buffer != nullptr)
        throw TemplateError(
            fmt::format("{{% generation %}} inside {}: where its text will stand is not known there; "
                        "put it around what is printed",
                        place.buffer),
            line);
      out_.has_generation = true;
      Stmt& s = add(body, StmtKind::kGeneration);
      // The body is a separate function in jinja2, so break and continue inside cannot refer to a loop
      // outside.
      s.body = whole_block("endgeneration", {false, "another {% generation %}"}, tag, line);
    } else if (tag == "break" || tag == "continue") {
      if (!place.in_loop) throw TemplateError(fmt::format("{{% {} %}} outside a loop", tag), line);
      add(body, tag == "break" ? StmtKind::kBreak : StmtKind::kContinue);
    } else if (tag == "include" || tag == "import" || tag == "from" || tag == "extends" || tag == "block" ||
               tag == "autoescape") {
      throw TemplateError(fmt::format("{{% {} %}} is not supported: a chat template is one file", tag), line);
    } else {
      throw TemplateError(fmt::format("unknown tag {{% {} %}}", tag), line);
    }
  }

  void if_statement(Stmt& s, Place place, const std::string& tag, int line) {
    s.expr = in_.tuple(false);
    s.body = block({"elif", "else", "endif"}, place, tag, line);
    if (in_.skip_name("elif")) {
      const ExpressionParser::Nesting nesting(in_);
      return if_statement(add(s.otherwise, StmtKind::kIf), place, tag, line);
    }
    if (in_.skip_name("else")) s.otherwise = block({"endif"}, place, tag, line);
    in_.advance();
  }

  void for_statement(Stmt& s, Place place, int line) {
    s.target = target(false);
    in_.expect_name("in");
    s.expr = in_.tuple(false, "recursive");
    if (in_.skip_name("if")) s.condition = in_.expression();
    s.recursive = in_.skip_name("recursive");
    s.body = block({"else", "endfor"}, {true, s.recursive ? "a recursive loop" : place.buffer}, "for", line);
    if (in_.skip_name("else")) s.otherwise = block({"endfor"}, place, "for", line);
    in_.advance();
  }

  void set_statement(Body& body, Place place, int line) {
    Stmt& s = add(body, StmtKind::kSet);
    s.target = target(true);
    if (in_.skip_operator("=")) {
      s.expr = in_.tuple();
      return;
    }
    s.kind = StmtKind::kSetBlock;
    s.expr = in_.filters(nullptr, false);
    s.body = whole_block("endset", {place.in_loop, "a set block"}, "set", line);
  }

  // A name or several; with `attributes` also namespace.name.
  Target target(bool attributes) {
    Target first = target_part(attributes);
    if (!in_.current().is_operator(",")) return first;
    Target out;
    out.parts.push_back(std::move(first));
    while (in_.skip_operator(",")) {
      if (in_.current().is_name("in") ||
          !(in_.current().kind == TokenKind::kName || in_.current().is_operator("(")))
        break;
      out.parts.push_back(target_part(attributes));
    }
    return out;
  }

  Target target_part(bool attributes) {
    if (in_.skip_operator("(")) {
      Target inner = target(attributes);
      in_.expect_operator(")");
      return inner;
    }
    const int line = in_.current().line;
    Target out;
    out.name = in_.take_name();
    for (const char* constant : {"true", "True", "false", "False", "none", "None"})
      if (out.name == constant)
        throw TemplateError(fmt::format("cannot set the constant '{}'", constant), line);
    if (attributes && in_.skip_operator(".")) out.attribute = in_.take_name();
    return out;
  }

  // The parameters (a, b=1) of a macro or a call block.
  void parameters(Stmt& s) {
    in_.expect_operator("(");
    while (!in_.current().is_operator(")")) {
      s.parameters.push_back(in_.take_name());
      s.values.push_back(in_.skip_operator("=") ? in_.expression() : nullptr);
      if (s.values.back() == nullptr && s.values.size() > 1 && s.values[s.values.size() - 2] != nullptr)
        in_.fail("a parameter without a default after one with a default");
      if (!in_.skip_operator(",")) break;
    }
    in_.expect_operator(")");
  }

  // Parses the body of a macro or call block. Notes which of the names that jinja2 provides are used in it.
  void function_body(Stmt& s, std::string_view end, const char* what, std::string_view tag, int line) {
    const size_t first = in_.position();
    s.body = whole_block(end, {false, what}, tag, line);
    s.reads_varargs = in_.names_since(first, "varargs");
    s.reads_kwargs = in_.names_since(first, "kwargs");
    s.reads_caller = in_.names_since(first, "caller");
  }

  void macro(Stmt& s, int line) {
    s.name = in_.take_name();
    parameters(s);
    function_body(s, "endmacro", "a macro", "macro", line);
  }

  void call_block(Stmt& s, int line) {
    if (in_.current().is_operator("(")) parameters(s);
    s.expr = in_.expression();
    if (s.expr->kind != ExprKind::kCall) throw TemplateError("{% call %} without a call behind it", line);
    function_body(s, "endcall", "a call block", "call", line);
  }

  void with(Stmt& s, Place place, int line) {
    while (in_.current().kind == TokenKind::kName) {
      s.targets.push_back(target_part(false));
      in_.expect_operator("=");
      s.values.push_back(in_.expression());
      if (!in_.skip_operator(",")) break;
    }
    s.body = whole_block("endwith", place, "with", line);
  }

  ExpressionParser in_;
  ParsedTemplate out_;
};

}  // namespace

ParsedTemplate parse(std::string_view source) { return Parser(source).run(); }

}  // namespace ostro::chat::jinja
