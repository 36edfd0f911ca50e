// Parsing the text form of a Program (text.h). Bad text gives an error with its line, never a crash.
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "ostro/ir/program/op_table.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/ir/text/text.h"

namespace ostro::ir {
namespace {

constexpr int kMaxDepth = 32;

// Recursive descent, one function for each construct. Values must be numbered 0, 1, ... in the order of their
// definition, so a number is an index into `ids`; the verifier checks the rest at the end.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Program> program() {
    Program p;
    RETURN_IF_ERROR(expect("program"));
    ASSIGN_OR_RETURN(p.name, string());
    RETURN_IF_ERROR(expect("leaves"));
    RETURN_IF_ERROR(expect("{"));
    while (!accept("}")) {
      ASSIGN_OR_RETURN(std::string axis, word());
      RETURN_IF_ERROR(expect(":"));
      ASSIGN_OR_RETURN(int64_t count, integer());
      p.leaves.axes.emplace_back(axis, count);
      accept(",");
    }
    RETURN_IF_ERROR(block(p.body, &p.param_names, 0));
    if (accept("results"))
      while (peek() == '"') {
        ASSIGN_OR_RETURN(std::string name, string());
        p.result_names.push_back(std::move(name));
      }
    skip();
    if (at_ != text_.size()) return fail("text after the program");
    if (p.param_names.size() != p.body.params.size()) p.param_names.clear();
    RETURN_IF_ERROR(verify(p));
    return p;
  }

 private:
  std::string in_line(const std::string& what) const {
    int line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    return fmt::format("program text, line {}: {}", line, what);
  }
  Error fail(const std::string& what) const { return invalid_argument(in_line(what)); }
  void skip() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  static bool word_char(char c) {
    return is_axis_name(std::string_view(&c, 1));  // words have the characters of axis names
  }
  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    if (word_char(token.back()) && at_ + token.size() < text_.size() && word_char(text_[at_ + token.size()]))
      return false;
    at_ += token.size();
    return true;
  }
  Status expect(std::string_view token) {
    if (!accept(token)) return fail(fmt::format("expected '{}'", token));
    return Status();
  }
  Result<std::string> word() {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && word_char(text_[at_])) ++at_;
    if (at_ == start) return fail("expected a word");
    return std::string(text_.substr(start, at_ - start));
  }
  Result<std::string> string() {
    RETURN_IF_ERROR(expect("\""));
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        if (c == 'n') c = '\n';
      }
      out += c;
    }
    if (at_ >= text_.size()) return fail("unterminated string");
    ++at_;
    return out;
  }
  Result<int64_t> integer() {
    skip();
    int64_t v = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (error != std::errc()) return fail("expected an integer");
    at_ = static_cast<size_t>(end - text_.data());
    return v;
  }
  Result<ValueId> value(const std::vector<ValueId>& ids) {
    RETURN_IF_ERROR(expect("%"));
    ASSIGN_OR_RETURN(int64_t n, integer());
    if (n < 0 || static_cast<size_t>(n) >= ids.size()) return fail(fmt::format("%{} is not defined yet", n));
    return ids[static_cast<size_t>(n)];
  }
  Result<Shape> shape() {
    ASSIGN_OR_RETURN(std::string name, word());
    const auto dtype = parse_dtype(name);
    if (!dtype) return unsupported(in_line(fmt::format("unknown dtype \"{}\"", name)));
    Shape s{*dtype, {}};
    RETURN_IF_ERROR(expect("["));
    while (!accept("]")) {
      ASSIGN_OR_RETURN(std::string axis, word());
      RETURN_IF_ERROR(expect(":"));
      ASSIGN_OR_RETURN(int64_t size, integer());
      if (size < 0 || size > (int64_t{1} << 48))
        return fail(fmt::format("axis \"{}\" has size {}", axis, size));
      s.axes.push_back({axis, size});
      accept(",");
    }
    return s;
  }
  Result<Attr> attr() {
    const char c = peek();
    if (c == '"') {
      ASSIGN_OR_RETURN(std::string s, string());
      return Attr(std::move(s));
    }
    if (accept("[")) {
      std::vector<int64_t> list;
      while (!accept("]")) {
        ASSIGN_OR_RETURN(int64_t v, integer());
        list.push_back(v);
        accept(",");
      }
      return Attr(std::move(list));
    }
    if (accept("<")) {
      std::vector<std::string> list;
      while (!accept(">")) {
        ASSIGN_OR_RETURN(std::string v, string());
        list.push_back(std::move(v));
        accept(",");
      }
      return Attr(std::move(list));
    }
    const size_t start = at_;
    while (at_ < text_.size() && (word_char(text_[at_]) || text_[at_] == '+')) ++at_;
    const std::string token(text_.substr(start, at_ - start));
    if (token.find_first_of("pnx") != std::string::npos) {  // hex float, inf or nan
      char* end = nullptr;
      const double v = std::strtod(token.c_str(), &end);
      if (end != token.c_str() + token.size()) return fail(fmt::format("bad number \"{}\"", token));
      return Attr(v);
    }
    at_ = start;
    ASSIGN_OR_RETURN(int64_t v, integer());
    return Attr(v);
  }
  Status block(Block& b, std::vector<std::string>* names, int depth) {
    if (depth > kMaxDepth) return fail("regions are nested too deeply");
    std::vector<ValueId> ids;
    RETURN_IF_ERROR(expect("("));
    while (!accept(")")) {
      RETURN_IF_ERROR(expect("%"));
      ASSIGN_OR_RETURN(int64_t n, integer());
      if (n != static_cast<int64_t>(ids.size())) return fail(fmt::format("expected %{}", ids.size()));
      RETURN_IF_ERROR(expect(":"));
      ASSIGN_OR_RETURN(Shape s, shape());
      ids.push_back(b.add_param(std::move(s)));
      if (peek() == '"') {
        ASSIGN_OR_RETURN(std::string name, string());
        if (names != nullptr) names->push_back(std::move(name));
      }
      accept(",");
    }
    RETURN_IF_ERROR(expect("{"));
    while (!accept("return")) RETURN_IF_ERROR(op(b, ids, depth));
    while (peek() == '%') {
      ASSIGN_OR_RETURN(ValueId v, value(ids));
      b.results.push_back(v);
      accept(",");
    }
    return expect("}");
  }
  Status op(Block& b, std::vector<ValueId>& ids, int depth) {
    std::vector<int64_t> numbers;
    while (accept("%")) {
      ASSIGN_OR_RETURN(int64_t n, integer());
      numbers.push_back(n);
      accept(",");
    }
    RETURN_IF_ERROR(expect("="));
    ASSIGN_OR_RETURN(std::string name, word());
    const auto kind = parse_op(name);
    if (!kind) return unsupported(in_line(fmt::format("unknown op \"{}\"", name)));
    Op out{*kind, {}, {}, {}, {}, "", "", ""};
    RETURN_IF_ERROR(expect("("));
    while (!accept(")")) {
      ASSIGN_OR_RETURN(ValueId v, value(ids));
      out.operands.push_back(v);
      accept(",");
    }
    if (accept("{"))
      while (!accept("}")) {
        ASSIGN_OR_RETURN(std::string key, word());
        RETURN_IF_ERROR(expect("="));
        ASSIGN_OR_RETURN(Attr a, attr());
        out.attrs.set(key, std::move(a));
        accept(",");
      }
    RETURN_IF_ERROR(expect(":"));
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] != static_cast<int64_t>(ids.size()))
        return fail(fmt::format("expected %{}", ids.size()));
      ASSIGN_OR_RETURN(Shape s, shape());
      accept(",");
      ids.push_back(b.add_value(std::move(s)));
      out.results.push_back(ids.back());
    }
    if (accept("@")) {
      ASSIGN_OR_RETURN(out.scope, string());
      ASSIGN_OR_RETURN(out.label, string());
      ASSIGN_OR_RETURN(out.location, string());
    }
    while (accept("region")) {
      Block region;
      RETURN_IF_ERROR(block(region, nullptr, depth + 1));
      out.regions.push_back(std::move(region));
    }
    b.ops.push_back(std::move(out));
    return Status();
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<Program> parse_program(std::string_view text) { return Parser(text).program(); }

}  // namespace ostro::ir
