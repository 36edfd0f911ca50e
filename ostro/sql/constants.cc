#include "ostro/sql/constants.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "ostro/sql/operands.h"
#include "ostro/sql/tokens.h"

namespace ostro::sql {
namespace {

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool has_digit(std::string_view text) { return std::any_of(text.begin(), text.end(), is_digit); }

// A format without the conversions of printf(): "%.3f" is nothing, "0.5%s" is "0.5".
std::string without_conversions(std::string_view format) {
  std::string out;
  for (size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      out += format[i++];
      continue;
    }
    ++i;
    while (i < format.size() &&
           (is_digit(format[i]) || std::string_view("-+ 0#,!.*l").find(format[i]) != std::string_view::npos))
      ++i;
    ++i;
  }
  return out;
}

bool is_power_of_ten(const std::string& text) {
  constexpr int kMost = 30;
  const double value = std::strtod(text.c_str(), nullptr);
  if (text.starts_with("0x") || text.starts_with("0X")) return false;
  for (int power = -kMost; power <= kMost; ++power)
    if (value == std::strtod(("1e" + std::to_string(power)).c_str(), nullptr)) return true;
  return false;
}

class ConstantReader {
 public:
  explicit ConstantReader(const std::string& query) : tokens_(tokens_of(query)) {}

  std::vector<QueryConstant> read() {
    frames_.push_back({});
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      const Token& token = tokens_[at_];
      if (token.kind == TokenKind::kNumber) number(token);
      if (token.kind == TokenKind::kText) text(token);
      if (token.kind == TokenKind::kName) name(token);
      if (const std::string same = same_operands(tokens_, at_); !same.empty())
        out_.push_back({same, chooses() ? ConstantUse::kChooses : ConstantUse::kComputes});
      if (token.kind == TokenKind::kSign) sign(token);
    }
    return std::move(out_);
  }

 private:
  // What stands between two parentheses.
  struct Frame {
    std::string function;  // in front of it, in capital letters; empty: none
    bool outer_chooses = false, chooses = false;
    bool joins = false;  // in what stands behind ON
    bool has_comma = false;
  };

  const Token& token_at(size_t place) const {
    static const Token kNone;
    return place < tokens_.size() ? tokens_[place] : kNone;
  }
  const Token& before(size_t distance = 1) const { return token_at(at_ - distance); }  // of -1: none
  const Token& behind(size_t distance = 1) const { return token_at(at_ + distance); }
  const Frame& frame() const { return frames_.back(); }

  void add(const Token& token, ConstantUse use) { out_.push_back({token.text, use}); }

  void name(const Token& token) {
    if (is_one_of(token.upper, {"TRUE", "FALSE"}) && behind().text != ".")
      add(token, chooses() ? ConstantUse::kChooses : ConstantUse::kComputes);
    // Only reserved words begin a clause here: OFFSET, which stands behind LIMIT, PARTITION and BY may also
    // name columns, and PARTITION BY is a clause where it comes first.
    const bool is_window = token.upper == "PARTITION" && before().text == "(" && behind().upper == "BY";
    if (is_window || is_one_of(token.upper, {"WHERE", "ON", "HAVING", "GROUP", "ORDER", "LIMIT"}))
      frames_.back().chooses = true, frames_.back().joins = token.upper == "ON";
    if (is_one_of(token.upper, {"SELECT", "FROM", "JOIN", "VALUES", "UNION", "EXCEPT", "INTERSECT", "WITH"}))
      frames_.back().chooses = frames_.back().joins = false;
  }

  void sign(const Token& token) {
    if (token.text == ",") {
      frames_.back().has_comma = true;
      // Another table follows: no list stands behind ON.
      if (std::exchange(frames_.back().joins, false)) frames_.back().chooses = false;
    }
    if (token.text == "(") {
      Frame inner;
      inner.outer_chooses = frame().outer_chooses || frame().chooses || before().upper == "IN";
      if (before().kind == TokenKind::kName) inner.function = before().upper;
      frames_.push_back(std::move(inner));
    }
    if (token.text == ")" && frames_.size() > 1) frames_.pop_back();
  }

  // Whether what stands here chooses rows or values, and how they are written.
  bool chooses() const {
    const auto compares = [](const Token& t) {
      return is_one_of(t.upper, {"=", "==", "<>", "!=", "<", "<=", ">", ">=", "IS", "LIKE", "GLOB", "BETWEEN",
                                 "AND", "OR", "NOT", "IN", "ESCAPE"});
    };
    return frame().outer_chooses || frame().chooses || compares(before()) || before().upper == "WHEN" ||
           compares(behind()) || frame().function == "COUNT" ||
           (frame().has_comma && is_one_of(frame().function, {"ROUND", "SUBSTR", "SUBSTRING"}));
  }

  // Whether something is multiplied or divided here that is itself no constant.
  bool scales() const {
    const auto multiplies = [](const Token& t) { return is_one_of(t.text, {"*", "/"}); };
    const bool is_first =
        multiplies(behind()) && (behind(2).kind == TokenKind::kName || behind(2).text == "(");
    const bool is_second =
        multiplies(before()) && (before(2).kind == TokenKind::kName || before(2).text == ")");
    return (is_first && !multiplies(before())) || (is_second && !multiplies(behind()));
  }

  void number(const Token& token) {
    if (chooses())
      add(token, ConstantUse::kChooses);
    else
      add(token, is_power_of_ten(token.text) && scales() ? ConstantUse::kScales : ConstantUse::kComputes);
  }

  void text(const Token& token) {
    if (chooses()) return add(token, ConstantUse::kChooses);
    const bool is_format = !frame().has_comma && is_one_of(frame().function, {"PRINTF", "FORMAT"});
    const bool has_number = has_digit(is_format ? without_conversions(token.text) : token.text);
    const bool counts = std::any_of(frames_.begin(), frames_.end(), [](const Frame& f) {
      return is_one_of(f.function, {"LENGTH", "UNICODE", "INSTR", "HEX"});
    });
    if (has_number || counts) add(token, ConstantUse::kComputes);
  }

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  std::vector<Frame> frames_;
  std::vector<QueryConstant> out_;
};

}  // namespace

std::vector<QueryConstant> constants_of(const std::string& query) { return ConstantReader(query).read(); }

bool compute(const std::vector<QueryConstant>& constants) {
  return std::any_of(constants.begin(), constants.end(),
                     [](const QueryConstant& c) { return c.use == ConstantUse::kComputes; });
}

}  // namespace ostro::sql
