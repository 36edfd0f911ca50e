#include "ostro/paper/latex.h"

#include <fmt/format.h>

#include <map>

#include "ostro/paper/answers.h"

namespace ostro::paper {
namespace {

constexpr const char* kDigits[] = {"zero", "one", "two",   "three", "four",
                                   "five", "six", "seven", "eight", "nine"};

std::string letters(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) out += c;
    if (c >= '0' && c <= '9') out += kDigits[c - '0'];
  }
  return out;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\textbackslash{}"; break;
      case '~': out += "\\textasciitilde{}"; break;
      case '^': out += "\\textasciicircum{}"; break;
      case '{':
      case '}':
      case '$':
      case '&':
      case '#':
      case '_':
      case '%': out += fmt::format("\\{}", c); break;
      case '\n':
      case '\r': out += ' '; break;
      default: out += c;
    }
  }
  return out;
}

std::string tabular(const lab::Rows& rows) {
  const auto line = [](const auto& cells) {
    std::string out;
    for (const std::string& cell : cells)
      out += (out.empty() ? "" : " & ") + (cell.empty() ? "{}" : escaped(cell));
    return out + " \\\\\n";
  };
  std::string out = fmt::format("\\begin{{tabular}}{{{}}}\n\\hline\n{}\\hline\n",
                                std::string(rows.columns.size(), 'l'), line(rows.columns));
  for (const auto& row : rows.rows) {
    std::vector<std::string> cells;
    for (const lab::Value& value : row) cells.push_back(lab::value_text(value));
    out += line(cells);
  }
  return out + "\\hline\n\\end{tabular}";
}

class Macros {
 public:
  Status add(const std::string& macro, const std::string& of, const std::string& text) {
    const auto [there, is_new] = names_.emplace(macro, of);
    if (!is_new)
      return invalid_argument(fmt::format(
          "--latex: {} and {} would both be \\{}; give one of them another name", there->second, of, macro));
    text_ += fmt::format("\\newcommand{{\\{}}}{{{}}}\n", macro, text);
    return {};
  }
  const std::string& text() const { return text_; }

 private:
  std::map<std::string, std::string> names_;
  std::string text_ =
      "% Written by `ostro lab report --latex`; each name and its query are in values.json.\n";
};

}  // namespace

Result<std::string> latex_macros(const lab::Values& values) {
  Macros out;
  for (const lab::Quoted& value : values.values) {
    const std::string name = "ostro" + letters(value.query.name), of = "queries." + value.query.name;
    RETURN_IF_ERROR(out.add(name, of, escaped(lab::value_text(value.value))));
    const std::vector<std::string> rounded = rounded_texts(value.value);
    for (size_t digits = 0; digits < rounded.size(); ++digits)
      RETURN_IF_ERROR(out.add(name + "digits" + kDigits[digits], of, rounded[digits]));
  }
  for (const lab::Quoted& verdict : values.verdicts)
    RETURN_IF_ERROR(out.add("ostroverdict" + letters(verdict.query.name), "hypotheses." + verdict.query.name,
                            escaped(lab::value_text(verdict.value))));
  for (const lab::QuotedRows& table : values.tables)
    RETURN_IF_ERROR(
        out.add("ostrotable" + letters(table.query.name), "tables." + table.query.name, tabular(table.rows)));
  return out.text();
}

}  // namespace ostro::paper
