#include "ostro/lab/report/report_text.h"

#include <fmt/format.h>

#include <sstream>

#include "ostro/base/html.h"
#include "ostro/config/options.h"
#include "ostro/lab/report/html_page.h"

namespace ostro::lab {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The numbers in a text: digits with points and commas between them.
void find_numbers(const std::string& text, std::vector<std::string>& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) continue;
    size_t end = i;
    while (end < text.size() && (is_digit(text[end]) || ((text[end] == '.' || text[end] == ',') &&
                                                         end + 1 < text.size() && is_digit(text[end + 1]))))
      ++end;
    out.push_back(text.substr(i, end - i));
    i = end;
  }
}

class Filler {
 public:
  Filler(std::string file, const Values& values) : file_(std::move(file)), values_(&values) {}

  Result<ReportBody> fill(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++number_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line.find_first_not_of(" \t") == std::string::npos) {
        end_paragraph();
      } else if (const std::string block = block_of(line); !block.empty()) {
        end_paragraph();
        ASSIGN_OR_RETURN(const std::string html, fill_block(block));
        out_.html += html;
      } else if (line.starts_with("# ")) {
        end_paragraph();
        ASSIGN_OR_RETURN(const std::string html, fill_line(line.substr(2)));
        out_.html += fmt::format("<h2>{}</h2>\n", html);
      } else {
        ASSIGN_OR_RETURN(const std::string html, fill_line(line));
        paragraph_ += (paragraph_.empty() ? "" : "\n") + html;
      }
    }
    end_paragraph();
    return std::move(out_);
  }

 private:
  void end_paragraph() {
    if (!paragraph_.empty()) out_.html += fmt::format("<p>{}</p>\n", paragraph_);
    paragraph_.clear();
  }

  Error error(const std::string& message) const {
    return invalid_argument(fmt::format("{}:{}: {}", file_, number_, message));
  }

  Result<std::string> fill_line(const std::string& line) {
    std::string html;
    for (size_t i = 0; i < line.size();) {
      size_t open = std::min(line.find('{', i), line.size());
      if (line.substr(open, 2) == "{{") ++open;  // the first one stays as text
      const std::string plain = line.substr(i, open - i);
      find_numbers(plain, out_.typed_numbers);
      html += html_escaped(plain);
      if (open == line.size()) break;
      if (open > i && line[open - 1] == '{') {
        i = open + 1;
        continue;
      }
      const size_t close = line.find('}', open);
      if (close == std::string::npos) return error("a placeholder has no }; write {{ for a brace");
      ASSIGN_OR_RETURN(const std::string filled, fill_place(line.substr(open + 1, close - open - 1)));
      html += filled;
      i = close + 1;
    }
    return html;
  }

  template <typename T>
  Result<const T*> find(const char* what, const std::vector<T>& all, const std::string& name) const {
    std::vector<std::string> names;
    for (const T& item : all) {
      if (item.query.name == name) return &item;
      names.push_back(item.query.name);
    }
    const std::string nearest = config::nearest_name(name, names);
    return error(fmt::format("the plan has no {} \"{}\"{}", what, name,
                             nearest.empty() ? "" : fmt::format("; the nearest is \"{}\"", nearest)));
  }

  Result<std::string> fill_place(const std::string& words) {
    std::istringstream in(words);
    std::string kind, name, digits, more;
    in >> kind >> name >> digits >> more;
    const bool has_digits = kind == "value" && digits.size() == 1 && is_digit(digits[0]);
    if (name.empty() || !more.empty() || (!digits.empty() && !has_digits))
      return error(fmt::format(
          "{{{}}}: write {{value NAME}}, {{value NAME DIGITS}}, {{verdict NAME}}, {{table NAME}} or {{figure "
          "NAME}}",
          words));
    if (kind == "verdict") {
      ASSIGN_OR_RETURN(const Quoted* verdict, find("hypothesis", values_->verdicts, name));
      return fmt::format("<a href=\"#hypothesis-{}\" class=\"{}\">{}</a>", name,
                         class_name(verdict->number_class), value_text(verdict->value));
    }
    if (kind == "value") {
      ASSIGN_OR_RETURN(const Quoted* value, find("query", values_->values, name));
      std::string text = value_text(value->value);
      if (!digits.empty()) {
        const auto* d = std::get_if<double>(&value->value);
        if (d == nullptr)
          return error(
              fmt::format("{{{}}}: {} is no number with a fraction; leave out the digits", words, text));
        text = fmt::format("{:.{}f}", *d, digits[0] - '0');
      }
      return value_html(*value, text);
    }
    if (kind == "table" || kind == "figure")
      return error(fmt::format("{{{}}}: must be alone on its line", words));
    return error(fmt::format("{{{}}}: write value, verdict, table or figure in front of the name", words));
  }

  // What stands between the braces of a line that is one placeholder of a table or a figure; else nothing.
  static std::string block_of(const std::string& line) {
    const size_t begin = line.find_first_not_of(" \t"), end = line.find_last_not_of(" \t");
    if (line[begin] != '{' || line.find('}') != end || end < begin + 2) return "";
    const std::string words = line.substr(begin + 1, end - begin - 1);
    std::istringstream in(words);
    std::string kind, name, more;
    in >> kind >> name >> more;
    return (kind == "table" || kind == "figure") && !name.empty() && more.empty() ? words : "";
  }

  Result<std::string> fill_block(const std::string& words) const {
    std::istringstream in(words);
    std::string kind, name;
    in >> kind >> name;
    if (kind == "table") {
      ASSIGN_OR_RETURN(const QuotedRows* table, find("table", values_->tables, name));
      return html_table(table->rows);
    }
    ASSIGN_OR_RETURN(const QuotedRows* figure, find("figure", values_->figures, name));
    return figure_svg(*figure);
  }

  std::string file_;
  const Values* values_;
  ReportBody out_;
  std::string paragraph_;
  int64_t number_ = 0;
};

}  // namespace

std::string value_html(const Quoted& value, const std::string& text) {
  return fmt::format("<a href=\"#value-{}\" class=\"{}\">{}</a>", value.query.name,
                     class_name(value.number_class), html_escaped(text));
}

Result<ReportBody> report_body(const std::string& text, const std::string& file, const Values& values) {
  return Filler(file, values).fill(text);
}

}  // namespace ostro::lab
