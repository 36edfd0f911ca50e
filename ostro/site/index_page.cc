// The first page, and what several pages need.
#include <fmt/format.h>

#include "ostro/base/html.h"
#include "ostro/lab/report/html_page.h"
#include "ostro/lab/report/values.h"
#include "ostro/page/numbers/axis.h"
#include "ostro/site/pages.h"
#include "ostro/site/run_extras.h"
#include "ostro/site/shell.h"
#include "ostro/site/step_graph.h"

namespace ostro::site {

using lab::cell;
using lab::shown_text;
using lab::value_text;

namespace {

Result<std::string> verdicts_html(const LabFacts& facts) {
  ASSIGN_OR_RETURN(const lab::Rows rows,
                   facts.record.select("SELECT name, verdict, late, class FROM hypotheses ORDER BY name"));
  if (rows.rows.empty()) return std::string();
  std::string out = "<h2>Verdicts</h2>\n<ul>\n";
  for (const auto& row : rows.rows) {
    const std::string name = html_escaped(value_text(row[0]));
    out += fmt::format("<li>{}: <span class=\"verdict\">{}</span> ",
                       facts.has_other_pages
                           ? fmt::format("<a href=\"hypotheses.html#hypothesis-{0}\">{0}</a>", name)
                           : name,
                       html_escaped(value_text(row[1])));
    if (const std::string kind = value_text(row[3]); !kind.empty())
      out += badge(kind, kind, "the class of the numbers that the verdict follows from");
    if (value_text(row[2]) == "1")
      out += badge("failed", "late", "it was registered or changed after a result was known");
    out += "</li>\n";
  }
  return out + "</ul>\n";
}

// What a step took.
std::string cost_html(const LabFacts& facts, const lab::StepState& s,
                      const std::map<std::string, std::string>& tokens,
                      const std::map<std::string, std::string>& seconds) {
  std::string out;
  if (const auto found = tokens.find(s.step->name); found != tokens.end())
    out = page::grouped(std::stoll(found->second)) + " tokens";
  if (const RunFacts* run = facts.find(s.step->name); run != nullptr && run->flops)
    out += (out.empty() ? "" : ", ") + flops_text(*run);
  if (const auto found = seconds.find(s.step->name); found != seconds.end())
    out += fmt::format(", <span class=\"measured\">{:.1f} s</span>", std::stod(found->second));
  return out;
}

std::string state_html(const lab::StepState& s) {
  const char* name = lab::action_name(s.action);
  return fmt::format("<td class=\"{0}\">{0}</td>", name);
}

}  // namespace

Result<std::string> section(const LabFacts& facts, const std::string& title, const std::string& sql) {
  ASSIGN_OR_RETURN(const lab::Rows rows, facts.record.select(sql));
  if (rows.rows.empty()) return std::string();
  return fmt::format("<h2>{}</h2>\n{}", title, lab::html_table(rows));
}

Result<std::string> loss_figure(const LabFacts& facts, const std::string& condition, int64_t most_points) {
  ASSIGN_OR_RETURN(const lab::Rows count,
                   facts.record.select("SELECT count(*) FROM chain WHERE " + condition));
  const int64_t every = (std::get<int64_t>(count.rows[0][0]) - 1) / most_points + 1;
  ASSIGN_OR_RETURN(lab::Rows losses, facts.record.select(fmt::format(
                                         "SELECT run, step, loss FROM chain WHERE {} AND step % {} = "
                                         "0 ORDER BY run, step",
                                         condition, every)));
  if (losses.rows.empty()) return std::string();
  const std::string title =
      every == 1 ? "training loss" : fmt::format("training loss of every {}th step", every);
  return lab::figure_svg({{title, "", ""}, std::move(losses)});
}

Result<std::string> index_body(const LabFacts& facts) {
  ASSIGN_OR_RETURN(const std::string verdicts, verdicts_html(facts));
  ASSIGN_OR_RETURN(const auto tokens,
                   facts.by_name("SELECT run, sum(tokens) FROM chain GROUP BY run ORDER BY run"));
  std::map<std::string, std::string> seconds;
  if (facts.measured) {
    ASSIGN_OR_RETURN(seconds,
                     facts.by_name("SELECT run, sum(seconds) FROM sessions GROUP BY run ORDER BY run"));
  }
  std::string body =
      fmt::format("<p>{}</p>\n{}<h2>Steps</h2>\n<p>{}.</p>\n{}", shown_text(facts.plan.question), verdicts,
                  facts.state.done_text("are "), step_graph_svg(facts));
  body +=
      "<div class=\"scroll\"><table><thead><tr><th>step</th><th>kind</th><th>state</th><th>why</th>"
      "<th>needs</th><th>cost</th></tr></thead><tbody>\n";
  for (const lab::StepState& s : facts.state.steps) {
    std::string inputs;
    for (const auto& [parameter, input] : s.step->inputs)
      inputs += fmt::format("{}{}: {}", inputs.empty() ? "" : ", ", html_escaped(parameter),
                            facts.step_html(input));
    body +=
        fmt::format("<tr>{}{}{}{}{}{}</tr>\n", cell(facts.step_html(s.step->name)), cell(s.step->kind->name),
                    state_html(s), cell(shown_text(facts.without_folder(s.reason))), cell(inputs),
                    cell(cost_html(facts, s, tokens, seconds), true));
  }
  body += "</tbody></table></div>\n";
  if (facts.state.is_done())
    body += fmt::format("<p><small>lab hash <code>{}</code></small></p>\n", facts.state.hash());
  return body;
}

}  // namespace ostro::site
