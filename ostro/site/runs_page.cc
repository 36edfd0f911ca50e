// The pages of several runs: their table, and two of them compared.
#include <fmt/format.h>

#include "ostro/base/html.h"
#include "ostro/lab/report/html_page.h"
#include "ostro/site/pages.h"
#include "ostro/site/shell.h"

namespace ostro::site {

using lab::cell;
using lab::shown_text;
using lab::value_text;

namespace {

constexpr size_t kMostCurves = 24;
constexpr int64_t kMostPoints = 6000;

struct Column {
  std::string name;
  std::map<std::string, std::string> values;  // by run
  bool is_number = false;
};

// What runs differ in, and what is the same in all of them.
struct Options {
  std::vector<Column> differing;
  std::vector<std::pair<std::string, std::string>> same;
};

Result<Options> options_of(const LabFacts& facts) {
  Options out;
  // A run at a time: a SELECT gives at most 100,000 rows.
  std::map<std::string, std::map<std::string, std::string>> all;  // path -> run -> value
  for (const RunFacts& run : facts.runs) {
    ASSIGN_OR_RETURN(const auto values, facts.by_name("SELECT path, value FROM config WHERE run = " +
                                                      lab::sql_literal(run.name) + " ORDER BY path"));
    for (const auto& [path, value] : values) all[path][run.name] = value;
  }
  for (auto& [path, values] : all) {
    bool is_same = values.size() == facts.runs.size();
    for (const auto& [run, value] : values) is_same = is_same && value == values.begin()->second;
    if (is_same)
      out.same.emplace_back(path, values.begin()->second);
    else
      out.differing.push_back({path, std::move(values)});
  }
  return out;
}

// What clocks said of all sessions of a run, and what that costs where the plan has a price.
Status add_costs(const LabFacts& facts, std::vector<Column>& columns) {
  ASSIGN_OR_RETURN(const lab::Rows times,
                   facts.record.select("SELECT run, total(seconds) FROM sessions GROUP BY run"));
  Column hours{"hours, measured", {}, true}, price{"at the declared price", {}, true};
  for (const auto& row : times.rows) {
    const std::string run = value_text(row[0]);
    const double seconds = std::get<double>(row[1]);
    hours.values[run] = fmt::format("{:.3f}", seconds / 3600);
    if (facts.plan.price) price.values[run] = facts.plan.price->text(seconds);
  }
  columns.push_back(std::move(hours));
  if (facts.plan.price) columns.push_back(std::move(price));
  return {};
}

Result<std::vector<Column>> columns_of(const LabFacts& facts) {
  std::vector<Column> out;
  ASSIGN_OR_RETURN(const lab::Rows variables,
                   facts.record.select("SELECT DISTINCT variable FROM variables ORDER BY variable"));
  for (const auto& row : variables.rows) {
    const std::string name = value_text(row[0]);
    ASSIGN_OR_RETURN(auto values, facts.by_name("SELECT name, value FROM variables WHERE variable = " +
                                                lab::sql_literal(name) + " ORDER BY name"));
    out.push_back({name, std::move(values)});
  }
  // Of several evaluations the last one, of the newest state.
  for (const auto& [name, sql] : {
           std::pair{"steps", "SELECT run, steps FROM runs ORDER BY run"},
           std::pair{"last loss",
                     "SELECT c.run, c.loss FROM chain c JOIN runs r ON r.run = c.run AND r.steps = c.step "
                     "ORDER BY c.run"},
           std::pair{"held-out loss", "SELECT run, loss FROM evaluations ORDER BY step, name"},
           std::pair{"bits per byte", "SELECT run, bits_per_byte FROM evaluations ORDER BY step, name"},
       }) {
    ASSIGN_OR_RETURN(auto values, facts.by_name(sql));
    out.push_back({name, std::move(values), true});
  }
  if (facts.measured) RETURN_IF_ERROR(add_costs(facts, out));
  return out;
}

}  // namespace

Result<std::string> runs_body(const LabFacts& facts) {
  if (facts.runs.empty()) return std::string("<p>No run is done yet.</p>\n");
  ASSIGN_OR_RETURN(std::vector<Column> columns, columns_of(facts));
  ASSIGN_OR_RETURN(Options options, options_of(facts));
  for (Column& option : options.differing) columns.push_back(std::move(option));
  std::string body = fmt::format(
      "<p>{} run{}. The table has the options in which runs differ.</p>\n<div class=\"scroll\"><table "
      "data-table=\"runs\"><thead><tr><th>run</th>",
      facts.runs.size(), facts.runs.size() == 1 ? "" : "s");
  for (const Column& column : columns)
    body += fmt::format("<th{}>{}</th>", column.is_number ? " class=\"n\"" : "", shown_text(column.name));
  body += "</tr></thead><tbody>\n";
  for (const RunFacts& run : facts.runs) {
    body += "<tr>" + cell(facts.step_html(run.name));
    for (const Column& column : columns) {
      const auto found = column.values.find(run.name);
      body += cell(found == column.values.end() ? "" : shown_text(found->second), column.is_number);
    }
    body += "</tr>\n";
  }
  body += "</tbody></table></div>\n";
  std::string some;
  for (size_t i = 0; i < facts.runs.size() && i < kMostCurves; ++i)
    some += (some.empty() ? "" : ", ") + lab::sql_literal(facts.runs[i].name);
  ASSIGN_OR_RETURN(const std::string losses, loss_figure(facts, "run IN (" + some + ")", kMostPoints));
  if (!losses.empty()) body += fmt::format("<h2>Loss</h2>\n<figure>{}</figure>\n", losses);
  if (facts.runs.size() > kMostCurves)
    body += fmt::format("<p>These are the first {} of {} runs.</p>\n", kMostCurves, facts.runs.size());
  body +=
      "<details><summary>Options that are the same in all runs</summary>\n<div class=\"scroll\"><table "
      "id=\"same\"><thead><tr><th>option</th><th>value</th></tr></thead><tbody>\n";
  for (const auto& [path, value] : options.same)
    body += fmt::format("<tr>{}{}</tr>\n", cell(shown_text(path)), cell(shown_text(value)));
  return body + "</tbody></table></div></details>\n";
}

Result<std::string> diff_body(const LabFacts& facts) {
  std::string choices;
  for (const RunFacts& run : facts.runs)
    choices += fmt::format("<option value=\"{}\">{}</option>", run.id, shown_text(run.name.substr(0, 200)));
  std::string body = fmt::format(
      "<noscript><p>Chains are compared by a script. Without it, <code>ostro lab diff RUN RUN</code> and the "
      "<a href=\"runs.html\">table of runs</a> say in which options runs differ.</p></noscript>\n"
      "<div id=\"diff\" hidden><div class=\"bar\"><label>first run <select id=\"a\">{0}</select></label>"
      "<label>second run <select id=\"b\">{0}</select></label></div>\n<p role=\"status\" "
      "id=\"answer\"></p><div id=\"found\"></div></div>\n",
      choices);
  ASSIGN_OR_RETURN(const std::string forks, forks_html(facts, "1"));
  return forks.empty() ? body : body + "<h2>Forks</h2>\n<ul>\n" + forks + "</ul>\n";
}

Result<std::string> forks_html(const LabFacts& facts, const std::string& condition) {
  ASSIGN_OR_RETURN(const lab::Rows forks, facts.record.select("SELECT run, parent, step FROM forks WHERE " +
                                                              condition + " ORDER BY run"));
  std::string out;
  for (const auto& row : forks.rows) {
    const std::string child = value_text(row[0]), parent = value_text(row[1]);
    out += fmt::format("<li>{} begins with the state of {} behind step {}", facts.step_html(child),
                       facts.step_html(parent), value_text(row[2]));
    const RunFacts *a = facts.find(parent), *b = facts.find(child);
    if (a != nullptr && b != nullptr)
      out += fmt::format(" (<a href=\"diff.html#a={}&amp;b={}\">compare</a>)", a->id, b->id);
    out += "</li>\n";
  }
  return out;
}

}  // namespace ostro::site
