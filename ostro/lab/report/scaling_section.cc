#include "ostro/lab/report/scaling_section.h"

#include <fmt/format.h>

#include <map>

#include "ostro/base/html.h"
#include "ostro/lab/report/figure.h"
#include "ostro/lab/report/html_page.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/functions.h"
#include "ostro/scaling/surface.h"

namespace ostro::lab {
namespace {

std::string rounded(const Value& value) {
  const auto* d = std::get_if<double>(&value);
  return d == nullptr ? value_text(value) : fmt::format("{:.4g}", *d);
}

// "0.34 (0.3 to 0.38)" of a value and the two behind it; "none" without one.
std::string with_interval(const std::vector<Value>& row, size_t at) {
  if (std::holds_alternative<std::monostate>(row[at])) return "none";
  return fmt::format("{} ({} to {})", rounded(row[at]), rounded(row[at + 1]), rounded(row[at + 2]));
}

// Whether an exponent is at an end of what is searched, up to the rounding of its logarithm.
bool is_at_end(double exponent) {
  return exponent < scaling::kLeastExponent * (1 + 1e-9) || exponent > scaling::kMostExponent * (1 - 1e-9);
}

// The runs of a fit as points, and its curve for each budget, over the logarithm of N.
Result<std::string> fit_figure(const Database& record, const std::string& name) {
  const auto rows_of = [&](const char* table) {
    return record.select(
        fmt::format("SELECT series, parameters, loss FROM {} WHERE name = {} ORDER BY series, parameters",
                    table, sql_literal(name)));
  };
  ASSIGN_OR_RETURN(const Rows curves, rows_of("fit_curves"));
  ASSIGN_OR_RETURN(const Rows runs, rows_of("fit_runs"));
  const numerics::HostArithmetic arithmetic;
  const double ln10 = numerics::log_f64(10);
  std::map<std::string, Line> lines;
  const auto take = [&](const Rows& rows, std::vector<std::pair<double, double>> Line::* member) {
    for (const auto& row : rows.rows) {
      Line& line = lines[value_text(row[0])];
      line.name = value_text(row[0]);
      (line.*member)
          .emplace_back(numerics::log_f64(std::get<double>(row[1])) / ln10, std::get<double>(row[2]));
    }
  };
  take(curves, &Line::points);
  take(runs, &Line::marks);
  std::vector<Line> all;
  for (auto& [unused, line] : lines) all.push_back(std::move(line));
  return line_chart_svg(name + ": loss of the runs, and the fit for what they take", "log10 of parameters",
                        "loss", all);
}

Result<std::string> forecasts_html(const Database& record) {
  ASSIGN_OR_RETURN(
      const Rows rows,
      record.select(
          "SELECT name, verdict, late, entry, runs, flops, parameters, tokens, loss, low90, high90, "
          "observed, best_parameters, best_parameters_low90, best_parameters_high90, best_tokens, "
          "best_tokens_low90, best_tokens_high90, registered FROM forecasts"));
  if (rows.rows.empty()) return std::string();
  std::string out =
      "<h2>Forecasts</h2>\n<div "
      "class=\"scroll\"><table><thead><tr><th>forecast</th><th>verdict</th><th>FLOPs</th>"
      "<th>parameters</th><th>tokens</th><th>loss, 90 %</th><th>observed</th><th>runs</th><th>best "
      "parameters for "
      "these FLOPs, 90 %</th><th>best tokens, 90 %</th><th>registered</th><th>forecasts registered before "
      "the target</th></tr></thead><tbody>\n";
  for (const auto& row : rows.rows) {
    const std::string entry = value_text(row[3]);
    out += fmt::format("<tr><td>{}</td><td><b>{}</b>{}</td>{}{}{}{}{}{}{}{}<td>{}</td>{}</tr>\n",
                       html_escaped(value_text(row[0])), value_text(row[1]),
                       value_text(row[2]) == "1" ? " <span class=\"failed\">late: it was registered after a "
                                                   "result, or is not the last one before it</span>"
                                                 : "",
                       cell(rounded(row[5]), true), cell(rounded(row[6]), true), cell(rounded(row[7]), true),
                       cell(with_interval(row, 8), true), cell(rounded(row[11]), true),
                       cell(value_text(row[4]), true), cell(with_interval(row, 12), true),
                       cell(with_interval(row, 15), true),
                       entry.empty() ? "no" : fmt::format("<code>{}</code>", entry.substr(0, 12)),
                       cell(value_text(row[18]), true));
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace

Result<std::string> scaling_html(const Database& record) {
  ASSIGN_OR_RETURN(
      const Rows fits,
      record.select("SELECT name, counted, runs, unknowns, floor, floor_low90, floor_high90, size_exponent, "
                    "size_exponent_low90, size_exponent_high90, data_exponent, data_exponent_low90, "
                    "data_exponent_high90, size_factor, data_factor, noise FROM fits"));
  if (fits.rows.empty()) return std::string();
  std::string out =
      "<h2>Fits</h2>\n<p>loss = E + A / N<sup>a</sup> + B / D<sup>b</sup>, N parameters and D tokens. "
      "Intervals "
      "hold the true number with a chance of 90 %.</p>\n<div class=\"scroll\"><table><thead><tr><th>fit</th>"
      "<th>runs</th><th>N counts</th><th>E</th><th>a</th><th>b</th><th>A</th><th>B</th><th>standard "
      "deviation of a "
      "run</th></tr></thead><tbody>\n";
  std::string figures, notes;
  for (const auto& row : fits.rows) {
    out += fmt::format("<tr><td>{}</td>{}{}{}{}{}{}{}{}</tr>\n", html_escaped(value_text(row[0])),
                       cell(value_text(row[2]), true), cell(html_escaped(value_text(row[1]))),
                       cell(with_interval(row, 4), true), cell(with_interval(row, 7), true),
                       cell(with_interval(row, 10), true), cell(rounded(row[13]), true),
                       cell(rounded(row[14]), true), cell(rounded(row[15]), true));
    for (const auto& [what, at] : {std::pair{"a", 7}, {"b", 10}})
      if (is_at_end(std::get<double>(row[static_cast<size_t>(at)])))
        notes += fmt::format(
            "<p>{}: {} is at the end of what is searched ({} to {}): these runs do not tell it.</p>\n",
            html_escaped(value_text(row[0])), what, scaling::kLeastExponent, scaling::kMostExponent);
    ASSIGN_OR_RETURN(const std::string figure, fit_figure(record, value_text(row[0])));
    figures += figure;
  }
  out += "</tbody></table></div>\n" + notes + figures;
  ASSIGN_OR_RETURN(const std::string forecasts, forecasts_html(record));
  return out + forecasts;
}

}  // namespace ostro::lab
