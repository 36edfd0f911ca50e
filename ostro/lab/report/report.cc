#include "ostro/lab/report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/html.h"
#include "ostro/base/sha256.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/record/record.h"
#include "ostro/lab/report/html_page.h"
#include "ostro/lab/report/hypotheses_table.h"
#include "ostro/lab/report/report_text.h"
#include "ostro/lab/report/scaling_section.h"

namespace ostro::lab {
namespace {

constexpr const char* kClasses =
    "<p><small><b>replayed</b>: recorded, and all steps that it stands on were done again with equal bits. "
    "<b>recorded</b>: in a hash chain, or computed from what is; the plan gives it again. "
    "<b>declared</b>: a person said so, as the constants of a query do that are a part of its answer. "
    "<b>measured</b>: a clock or a machine; it is another number each time, whatever else was read. A value "
    "has the last of these classes that anything has of which it was computed.</small></p>\n";

// All values with their queries: where the numbers of the text lead to.
std::string values_table(const Values& values) {
  if (values.values.empty()) return "";
  std::string out =
      "<h2>Values</h2>\n<div "
      "class=\"scroll\"><table><thead><tr><th>name</th><th>value</th><th>class</th><th>query</th>"
      "<th>constants in it</th></tr></thead><tbody>\n";
  for (const Quoted& v : values.values)
    out += fmt::format(
        "<tr id=\"value-{0}\"><td>{0}</td>{1}<td class=\"{2}\">{2}</td><td><code>{3}</code></td>{4}</tr>\n",
        v.query.name, cell(html_escaped(value_text(v.value)), true), class_name(v.number_class),
        html_escaped(v.query.sql),
        cell(html_escaped(
            fmt::format("{}", fmt::join(constant_texts(v.constants, sql::ConstantUse::kComputes), ", ")))));
  return out + "</tbody></table></div>\n" + kClasses;
}

std::string typed_numbers(const std::vector<std::string>& numbers) {
  if (numbers.empty()) return "";
  std::string list;
  for (const std::string& n : numbers) list += (list.empty() ? "" : " ") + html_escaped(n);
  return fmt::format(
      "<p><small>Numbers that stand in the text itself, or in queries, and are checked by nothing: "
      "{}</small></p>\n",
      list);
}

// What was done again, by whom.
Result<std::string> replays_html(const Database& record) {
  ASSIGN_OR_RETURN(const Rows rows,
                   record.select("SELECT name AS step, verified, who AS \"by\" FROM replays"));
  return rows.rows.empty() ? std::string() : "<h2>Replays</h2>\n" + html_table(rows);
}

Result<std::string> report_html(io::FileSystem& fs, const Plan& plan, const LabState& state,
                                const Values& values, const Database& record) {
  std::string body =
      fmt::format("<h1>{}</h1>\n<p>{}</p>\n", html_escaped(plan.name), html_escaped(plan.question));
  std::vector<std::string> typed;
  if (plan.report.empty() || is_paper(plan)) {
    for (const QuotedRows& figure : values.figures) body += figure_svg(figure);
    for (const QuotedRows& table : values.tables)
      body += fmt::format("<h2>{}</h2>\n{}", table.query.name, html_table(table.rows));
  } else {
    const std::string file = io::join_path(plan.folder, plan.report);
    ASSIGN_OR_RETURN(const std::string text, fs.read_file(file));
    ASSIGN_OR_RETURN(const ReportBody filled, report_body(text, file, values));
    body += filled.html;
    typed = filled.typed_numbers;
  }
  ASSIGN_OR_RETURN(const std::string hypotheses, hypotheses_html(record));
  ASSIGN_OR_RETURN(const std::string registry, registry_html(record));
  ASSIGN_OR_RETURN(const std::string scaling, scaling_html(record));
  body += scaling + hypotheses + registry;
  const std::vector<std::string> in_queries = typed_in_queries(values);
  typed.insert(typed.end(), in_queries.begin(), in_queries.end());
  ASSIGN_OR_RETURN(const std::string replays, replays_html(record));
  body += values_table(values) + replays + typed_numbers(typed);
  body += fmt::format(
      "<p><small>lab hash <code>{}</code>. <code>ostro lab report --check</code> makes this report again and "
      "compares.</small></p>\n",
      state.hash());
  return html_page(plan.name, body);
}

}  // namespace

bool is_paper(const Plan& plan) { return io::has_extension(plan.report, ".typ"); }

Result<ReportData> report_data(io::FileSystem& fs, const Plan& plan, const LabState& state) {
  ASSIGN_OR_RETURN(Database all, make_record(fs, plan, state, /*measured=*/true));
  ASSIGN_OR_RETURN(Values values, ask_all(all, plan));
  const auto is_measured = [](const auto& of) { return of.number_class == NumberClass::kMeasured; };
  const auto reads_measured = [&](const QuotedRows& of) { return is_measured(of.rows); };
  const bool measured = std::any_of(values.values.begin(), values.values.end(), is_measured) ||
                        std::any_of(values.tables.begin(), values.tables.end(), reads_measured) ||
                        std::any_of(values.figures.begin(), values.figures.end(), reads_measured);
  ASSIGN_OR_RETURN(const Database record, make_record(fs, plan, state, measured));
  ASSIGN_OR_RETURN(std::string bytes, record.bytes());
  ReportData out{std::move(all), std::move(values), {}};
  out.files.push_back({"record.sqlite", std::move(bytes)});
  out.files.push_back({"values.json", values_json(out.values)});
  for (const QuotedRows& figure : out.values.figures)
    out.files.push_back({figure.query.name + ".svg", figure_svg(figure, /*shows_name=*/!is_paper(plan))});
  return out;
}

ReportFile report_lock(const Plan& plan, const LabState& state, const std::vector<ReportFile>& files,
                       const std::string& typst) {
  nlohmann::json lock = {{"lab", state.hash()}, {"plan", sha256_hex(canonical_plan(plan))}};
  if (!typst.empty()) lock["typst"] = typst;
  for (const ReportFile& file : files) lock["files"][file.name] = sha256_hex(file.bytes);
  return {"report.lock", lock.dump(1) + "\n"};
}

Result<std::vector<ReportFile>> make_report(io::FileSystem& fs, const Plan& plan, const LabState& state) {
  ASSIGN_OR_RETURN(const ReportData data, report_data(fs, plan, state));
  return make_report(fs, plan, state, data);
}

Result<std::vector<ReportFile>> make_report(io::FileSystem& fs, const Plan& plan, const LabState& state,
                                            const ReportData& data) {
  std::vector<ReportFile> files = data.files;
  ASSIGN_OR_RETURN(std::string html, report_html(fs, plan, state, data.values, data.tables));
  files.push_back({"report.html", std::move(html)});
  files.push_back(report_lock(plan, state, files));
  return files;
}

Status write_files(io::FileSystem& fs, const std::string& folder, const std::vector<ReportFile>& files) {
  for (const ReportFile& file : files) {
    const std::string path = io::join_path(folder, file.name);
    RETURN_IF_ERROR(fs.make_dirs(io::parent_path(path)));
    RETURN_IF_ERROR(io::write_file_atomically(fs, path, file.bytes));
  }
  return {};
}

Result<std::vector<std::string>> check_report(io::FileSystem& fs, const std::string& folder,
                                              const std::vector<ReportFile>& files) {
  std::vector<std::string> wrong;
  for (const ReportFile& file : files) {
    const std::string path = io::join_path(folder, file.name);
    const auto there = fs.read_file(path);
    if (!there.ok() && there.error().code() != ErrorCode::kNotFound) return there.error();
    if (!there.ok()) wrong.push_back(fmt::format("{}: is missing", path));
    if (there.ok() && *there != file.bytes)
      wrong.push_back(fmt::format("{}: is not what the lab gives: its SHA-256 is {}, not {}", path,
                                  sha256_hex(*there), sha256_hex(file.bytes)));
  }
  const auto there = files_below(fs, folder);
  if (!there.ok() && there.error().code() == ErrorCode::kNotFound) return wrong;
  if (!there.ok()) return there.error();
  for (const std::string& name : *there)
    if (std::none_of(files.begin(), files.end(), [&](const ReportFile& f) { return f.name == name; }))
      wrong.push_back(fmt::format("{}: is no part of the report; remove it", io::join_path(folder, name)));
  return wrong;
}

}  // namespace ostro::lab
