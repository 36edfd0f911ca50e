#include "ostro/site/site.h"

#include <fmt/format.h>

#include "ostro/base/html.h"
#include "ostro/lab/record/record.h"
#include "ostro/lab/report/html_page.h"
#include "ostro/lab/report/hypotheses_table.h"
#include "ostro/lab/report/scaling_section.h"
#include "ostro/lab/report/values.h"
#include "ostro/site/step_graph.h"

namespace ostro::site {

using namespace lab;

namespace {

constexpr int64_t kMostPoints = 20'000;  // of a figure

// A text in which paths begin in the plan's folder, so that no place of this machine is in a page.
std::string without_folder(const Plan& plan, const std::string& text) {
  if (plan.folder.empty()) return text;
  const std::string folder = plan.folder.ends_with('/') ? plan.folder : plan.folder + "/";
  const auto is_of_path = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '/';
  };
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if ((i == 0 || !is_of_path(text[i - 1])) && text.compare(i, folder.size(), folder) == 0) {
      i += folder.size();
      continue;
    }
    out += text[i++];
  }
  return out;
}

class Site {
 public:
  Site(const Plan& plan, const LabState& state, const Database& record)
      : plan_(plan), state_(state), record_(record) {
    for (const StepState& s : state.steps)
      if (s.step->kind->makes_run() && s.action == Action::kSkip) runs_.push_back(s.step->name);
  }

  Result<std::vector<ReportFile>> pages(bool has_report) {
    navigation_ =
        "<nav><a href=\"index.html\">Steps</a> <a href=\"runs.html\">Runs</a> <a href=\"data.html\">Data</a>";
    ASSIGN_OR_RETURN(const Rows entries, record_.select("SELECT line FROM registry"));
    const bool registers = !plan_.hypotheses.empty() || !entries.rows.empty();
    ASSIGN_OR_RETURN(const std::string scaling, scaling_html(record_));
    if (!scaling.empty()) navigation_ += " <a href=\"scaling.html\">Scaling</a>";
    if (registers) navigation_ += " <a href=\"hypotheses.html\">Hypotheses</a>";
    navigation_ += has_report ? " <a href=\"report/report.html\">Report</a></nav>\n" : "</nav>\n";
    std::vector<ReportFile> out = {{"index.html", index()}};
    ASSIGN_OR_RETURN(std::string runs, runs_page());
    out.push_back({"runs.html", std::move(runs)});
    ASSIGN_OR_RETURN(std::string data, data_page());
    out.push_back({"data.html", std::move(data)});
    if (!scaling.empty()) out.push_back({"scaling.html", page("Scaling", scaling)});
    if (registers) {
      ASSIGN_OR_RETURN(const std::string hypotheses, hypotheses_html(record_));
      ASSIGN_OR_RETURN(const std::string registry, registry_html(record_));
      out.push_back({"hypotheses.html", page("Hypotheses", hypotheses + registry)});
    }
    for (size_t i = 0; i < runs_.size(); ++i) {
      ASSIGN_OR_RETURN(std::string page, run_page(runs_[i]));
      out.push_back({run_file(i), std::move(page)});
    }
    return out;
  }

 private:
  static std::string run_file(size_t number) { return fmt::format("run-{}.html", number + 1); }

  std::string page(const std::string& title, const std::string& body) const {
    return html_page(title + " - " + plan_.name,
                     fmt::format("{}<h1>{}</h1>\n{}", navigation_, html_escaped(title), body));
  }

  // The name of a step, as a link where it has a page.
  std::string step_html(const std::string& name) const {
    for (size_t i = 0; i < runs_.size(); ++i)
      if (runs_[i] == name) return fmt::format("<a href=\"{}\">{}</a>", run_file(i), html_escaped(name));
    return html_escaped(name);
  }

  std::string index() const {
    std::string body = fmt::format(
        "<p>{}</p>\n{}<h2>Steps</h2>\n<div class=\"scroll\"><table><thead><tr><th>step</th><th>kind</th>"
        "<th>state</th><th>why</th><th>needs</th></tr></thead><tbody>\n",
        html_escaped(plan_.question), step_graph_svg(state_));
    for (const StepState& s : state_.steps) {
      std::string inputs;
      for (const auto& [parameter, input] : s.step->inputs)
        inputs += fmt::format("{}{}: {}", inputs.empty() ? "" : ", ", parameter, step_html(input));
      body += fmt::format("<tr>{}{}<td class=\"{}\">{}</td>{}{}</tr>\n", cell(step_html(s.step->name)),
                          cell(s.step->kind->name), action_name(s.action), action_name(s.action),
                          cell(html_escaped(without_folder(plan_, s.reason))), cell(inputs));
    }
    body += "</tbody></table></div>\n";
    if (state_.is_done())
      body += fmt::format("<p><small>lab hash <code>{}</code></small></p>\n", state_.hash());
    return page(plan_.name, body);
  }

  // Runs beside each other, with the options in which they differ.
  Result<std::string> runs_page() const {
    ASSIGN_OR_RETURN(
        const Rows differing,
        record_.select("SELECT path FROM config GROUP BY path HAVING count(*) < (SELECT count(*) FROM runs) "
                       "OR count(DISTINCT value) > 1 ORDER BY path"));
    std::string body =
        "<p>Options that are the same in all runs are left out.</p>\n<div "
        "class=\"scroll\"><table><thead><tr><th>run</th><th>steps</th><th>last loss</th>"
        "<th>held-out loss</th><th>bits per byte</th>";
    for (const auto& row : differing.rows)
      body += fmt::format("<th>{}</th>", html_escaped(value_text(row[0])));
    body += "</tr></thead><tbody>\n";
    for (const std::string& run : runs_) {
      const std::string name = sql_literal(run);
      ASSIGN_OR_RETURN(
          const Rows facts,
          record_.select(fmt::format(
              "SELECT r.steps, (SELECT loss FROM chain WHERE run = r.run AND step = r.steps), "
              "(SELECT loss FROM evaluations WHERE run = r.run), "
              "(SELECT bits_per_byte FROM evaluations WHERE run = r.run) FROM runs r WHERE r.run = {}",
              name)));
      body += "<tr>" + cell(step_html(run));
      for (const Value& value : facts.rows.at(0)) body += cell(html_escaped(value_text(value)), true);
      for (const auto& row : differing.rows) {
        ASSIGN_OR_RETURN(const Rows value,
                         record_.select(fmt::format("SELECT value FROM config WHERE run = {} AND path = {}",
                                                    name, sql_literal(value_text(row[0])))));
        body += cell(value.rows.empty() ? "" : html_escaped(value_text(value.rows[0][0])));
      }
      body += "</tr>\n";
    }
    body += "</tbody></table></div>\n";
    ASSIGN_OR_RETURN(const std::string losses, loss_figure("1"));
    if (!losses.empty()) body += "<h2>Loss</h2>\n" + losses;
    return page("Runs", body);
  }

  // The losses of some runs; of many steps every k-th, so that no page is large.
  Result<std::string> loss_figure(const std::string& condition) const {
    ASSIGN_OR_RETURN(const Rows count, record_.select("SELECT count(*) FROM chain WHERE " + condition));
    const int64_t every = std::get<int64_t>(count.rows[0][0]) / kMostPoints + 1;
    ASSIGN_OR_RETURN(Rows losses,
                     record_.select(fmt::format(
                         "SELECT run, step, loss FROM chain WHERE {} AND step % {} = 0 ORDER BY run, step",
                         condition, every)));
    if (losses.rows.empty()) return std::string();
    return figure_svg(
        {{every == 1 ? "training loss" : fmt::format("training loss of every {}th step", every), "", ""},
         std::move(losses)});
  }

  Result<std::string> section(const char* title, const std::string& sql) const {
    ASSIGN_OR_RETURN(const Rows rows, record_.select(sql));
    if (rows.rows.empty()) return std::string();
    return fmt::format("<h2>{}</h2>\n{}", title, html_table(rows));
  }

  Result<std::string> data_page() const {
    ASSIGN_OR_RETURN(const std::string sources,
                     section("Sources", "SELECT name, file, bytes, licence, sha256 FROM sources"));
    ASSIGN_OR_RETURN(const std::string stores,
                     section("Token stores", "SELECT name, split, documents, tokens, bytes FROM stores"));
    return page("Data", sources + stores);
  }

  Result<std::string> run_page(const std::string& run) const {
    const std::string where = "WHERE run = " + sql_literal(run);
    ASSIGN_OR_RETURN(std::string body, loss_figure("run = " + sql_literal(run)));
    ASSIGN_OR_RETURN(
        const std::string scores,
        section("Evaluations", "SELECT name, step, loss, bits_per_byte, tokens FROM evaluations " + where));
    ASSIGN_OR_RETURN(
        const std::string phases,
        section(
            "Phases",
            fmt::format("SELECT name, from_step, to_step, batch, first_rate, last_rate, tokens, changes FROM "
                        "phases {0} AND (SELECT count(*) FROM phases {0}) > 1 ORDER BY from_step",
                        where)));
    ASSIGN_OR_RETURN(
        const std::string facts,
        section("Identity", fmt::format("SELECT 'run hash' AS what, hash AS value FROM runs {0} UNION ALL "
                                        "SELECT 'programs', program FROM runs {0} "
                                        "UNION ALL SELECT 'data', data FROM runs {0} UNION ALL SELECT "
                                        "'tokenizer', tokenizer FROM runs {0} "
                                        "UNION ALL SELECT 'numerics version', numerics FROM runs {0}",
                                        where)));
    ASSIGN_OR_RETURN(
        const std::string states,
        section("Checkpoints", fmt::format("SELECT step, state FROM checkpoints {} ORDER BY step", where)));
    ASSIGN_OR_RETURN(
        const std::string config,
        section("Configuration", fmt::format("SELECT path, value FROM config {} ORDER BY path", where)));
    body += scores + phases + facts;
    body += fmt::format(
        "<p>To compute the run again and compare, in the plan's folder: <code>ostro verify {}</code></p>\n",
        html_escaped(without_folder(plan_, state_.made.at(run).folder)));
    return page(run, body + states + config);
  }

  const Plan& plan_;
  const LabState& state_;
  const Database& record_;
  std::vector<std::string> runs_;  // that are done
  std::string navigation_;
};

}  // namespace

Result<std::vector<ReportFile>> make_site(io::FileSystem& fs, const Plan& plan, const LabState& state) {
  ASSIGN_OR_RETURN(const Database record, make_record(fs, plan, state, /*measured=*/false));
  ASSIGN_OR_RETURN(std::vector<ReportFile> files, Site(plan, state, record).pages(state.is_done()));
  if (!state.is_done()) return files;
  ASSIGN_OR_RETURN(const std::vector<ReportFile> report, make_report(fs, plan, state));
  for (const ReportFile& file : report) files.push_back({"report/" + file.name, file.bytes});
  return files;
}

}  // namespace ostro::site
