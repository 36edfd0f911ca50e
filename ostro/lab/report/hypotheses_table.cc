#include "ostro/lab/report/hypotheses_table.h"

#include <fmt/format.h>

#include "ostro/base/html.h"
#include "ostro/lab/report/html_page.h"

namespace ostro::lab {
namespace {

std::string four_digits(const Value& value) {
  const auto* d = std::get_if<double>(&value);
  return d == nullptr ? value_text(value) : fmt::format("{:.4g}", *d);
}

std::string short_or(const Value& value, const char* otherwise) {
  const std::string text = value_text(value);
  return text.empty() ? otherwise : fmt::format("<code>{}</code>", html_escaped(text.substr(0, 12)));
}

// Predictions of one chance, and how many of them held.
Result<std::string> predictions_html(const Database& record) {
  ASSIGN_OR_RETURN(const Rows rows,
                   record.select("SELECT chance, count(*), sum(held) FROM hypotheses WHERE held IS NOT NULL "
                                 "GROUP BY chance ORDER BY chance"));
  std::string out;
  for (const auto& row : rows.rows)
    out += fmt::format("<p>Of {} prediction{} with the chance {}, {} held.</p>\n", value_text(row[1]),
                       value_text(row[1]) == "1" ? "" : "s", value_text(row[0]), value_text(row[2]));
  return out;
}

}  // namespace

Result<std::string> hypotheses_html(const Database& record) {
  ASSIGN_OR_RETURN(
      const Rows rows,
      record.select("SELECT name, verdict, n, mean, low95, high95, predicted_low, predicted_high, held, "
                    "registration, beacon, late, metric, supported, refuted, class, reason FROM hypotheses"));
  if (rows.rows.empty()) return std::string();
  std::string out =
      "<h2>Hypotheses</h2>\n<div class=\"scroll\"><table><thead><tr><th>name</th><th>verdict</th><th>n</th>"
      "<th>mean</th><th>95 % interval</th><th>predicted</th><th>registration</th><th>beacon</th></tr></thead>"
      "<tbody>\n";
  for (const auto& row : rows.rows) {
    const auto range = [&](size_t low) {
      return std::holds_alternative<std::monostate>(row[low])
                 ? std::string()
                 : fmt::format("{} to {}", four_digits(row[low]), four_digits(row[low + 1]));
    };
    const std::string held = value_text(row[8]);
    out += fmt::format(
        "<tr "
        "id=\"hypothesis-{0}\"><td>{0}</td><td><b>{1}</b>{2}</td>{3}{4}{5}{6}<td>{7}</td><td>{8}</td></tr>\n",
        value_text(row[0]), value_text(row[1]),
        value_text(row[11]) == "1"
            ? " <span class=\"failed\">late: it was registered or changed after a result"
              "</span>"
            : "",
        cell(value_text(row[2]), true), cell(four_digits(row[3]), true), cell(range(4), true),
        cell(range(6) + (held.empty()  ? ""
                         : held == "1" ? ", held"
                                       : ", did not hold"),
             true),
        short_or(row[9], "none"), value_text(row[10]).empty() ? "none" : html_escaped(value_text(row[10])));
  }
  out += "</tbody></table></div>\n";
  for (const auto& row : rows.rows)
    out += fmt::format(
        "<p><small><b>{}</b>{}: <code>{}</code>; supported if {}, refuted if {}{}</small></p>\n",
        value_text(row[0]), value_text(row[15]).empty() ? "" : ", " + value_text(row[15]),
        html_escaped(value_text(row[12])), html_escaped(value_text(row[13])),
        html_escaped(value_text(row[14])),
        value_text(row[16]).empty() ? "" : "; neither, since " + html_escaped(value_text(row[16])));
  ASSIGN_OR_RETURN(const std::string predictions, predictions_html(record));
  return out + predictions;
}

Result<std::string> registry_html(const Database& record) {
  ASSIGN_OR_RETURN(
      const Rows rows,
      record.select("SELECT line, time, kind, coalesce(registration, hypothesis) AS what, text, changes, "
                    "late, hash FROM registry ORDER BY line"));
  if (rows.rows.empty()) return std::string();
  return "<h2>Registry</h2>\n" + html_table(rows);
}

}  // namespace ostro::lab
