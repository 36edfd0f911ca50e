// The pages of data: the ledger of all texts, and the batches of runs.
#include <fmt/format.h>

#include "ostro/base/html.h"
#include "ostro/lab/report/figure.h"
#include "ostro/lab/report/html_page.h"
#include "ostro/page/numbers/axis.h"
#include "ostro/site/pages.h"

namespace ostro::site {

using lab::cell;
using lab::shown_text;

namespace {

constexpr size_t kMostDocuments = 100;  // of the static table

std::string component_name(const ComponentOf& component) {
  return component.name.empty() ? component.store : component.name;
}

std::string runs_html(const LabFacts& facts, const BatchSet& set) {
  std::string out;
  for (const std::string& run : set.runs) out += (out.empty() ? "" : ", ") + facts.step_html(run);
  return out;
}

std::string mixture_html(const BatchSet& set) {
  std::string out =
      "<h2>Mixture</h2>\n<div class=\"scroll\"><table><thead><tr><th>component</th><th>store</th><th "
      "class=\"n\">sequences</th><th class=\"n\">examples of the run</th><th class=\"n\">epochs</th></tr>"
      "</thead><tbody>\n";
  for (const ComponentOf& c : set.components)
    out += fmt::format(
        "<tr>{}{}{}{}{}</tr>\n", cell(html_escaped(component_name(c))), cell(html_escaped(c.store)),
        cell(page::grouped(c.sequences), true), cell(page::grouped(c.examples), true),
        cell(c.sequences == 0
                 ? ""
                 : fmt::format("{:.3f}", static_cast<double>(c.examples) / static_cast<double>(c.sequences)),
             true));
  out += "</tbody></table></div>\n";
  if (set.components.size() < 2) return out;
  std::vector<lab::Line> lines;
  for (size_t c = 0; c < set.components.size(); ++c) {
    lab::Line& line = lines.emplace_back();
    line.name = component_name(set.components[c]);
    for (const auto& [step, counts] : set.mixture) {
      int64_t all = 0;
      for (const int64_t count : counts) all += count;
      line.points.emplace_back(static_cast<double>(step),
                               static_cast<double>(counts[c]) / static_cast<double>(all));
    }
  }
  return out + fmt::format("<figure>{}</figure>\n",
                           lab::line_chart_svg("share of each component", "step", "", lines));
}

std::string bytes_text(const DocumentOf& d) {
  return d.end > d.begin ? fmt::format("{} to {}", d.begin, d.end - 1) : "";
}

std::string documents_html(const BatchSet& set) {
  std::string out =
      "<h2>Documents</h2>\n<div class=\"scroll\"><table><thead><tr><th>component</th><th>file</th><th "
      "class=\"n\">document</th><th class=\"n\">row</th><th class=\"n\">bytes</th><th class=\"n\">tokens</th>"
      "<th class=\"n\">uses</th><th class=\"n\">first step</th><th>SHA-256 of its "
      "ids</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < set.documents.size() && i < kMostDocuments; ++i) {
    const DocumentOf& d = set.documents[i];
    out += fmt::format("<tr>{}{}{}{}{}{}{}{}{}</tr>\n",
                       cell(html_escaped(component_name(set.components[d.component]))),
                       cell(shown_text(d.file)), cell(std::to_string(d.number), true),
                       cell(std::to_string(d.row), true), cell(bytes_text(d), true),
                       cell(std::to_string(d.tokens), true), cell(std::to_string(d.all_uses), true),
                       cell(d.uses.empty() ? "" : std::to_string(d.uses[0].step), true),
                       cell(fmt::format("<code>{}</code>", d.sha256.substr(0, 16))));
  }
  out += "</tbody></table></div>\n";
  if (set.documents.size() > kMostDocuments)
    out +=
        fmt::format("<p>These are the first {} of {} documents.</p>\n", kMostDocuments, set.documents.size());
  return out;
}

std::string first_step_html(const BatchSet& set) {
  if (set.steps.empty()) return "";
  std::string out = fmt::format("<h2>Step {}</h2>\n<ol start=\"0\">\n", set.steps[0].step);
  for (const SequenceOf& s : set.steps[0].sequences) {
    out += fmt::format("<li>{}, sequence {}: ", html_escaped(component_name(set.components[s.component])),
                       s.sequence);
    std::string parts;
    for (const SpanOf& span : s.spans)
      parts += fmt::format("{}positions {} to {} from {} document {}", parts.empty() ? "" : "; ", span.begin,
                           span.end - 1, isolated(set.documents[span.document].file),
                           set.documents[span.document].number);
    out += parts + "</li>\n";
  }
  return out + "</ol>\n";
}

}  // namespace

Result<std::string> data_body(const LabFacts& facts, const std::vector<BatchSet>& sets) {
  std::string body;
  for (const auto& [title, sql] :
       {std::pair{"Sources", "SELECT name, file, bytes, licence, sha256 FROM sources"},
        std::pair{"Token stores", "SELECT name, split, documents, tokens, bytes FROM stores"},
        std::pair{"Rows that were left out", "SELECT name, reason, rows FROM left_out ORDER BY name, reason"},
        std::pair{"Files that programs made", "SELECT name, file, bytes, sha256 FROM outputs"}}) {
    ASSIGN_OR_RETURN(const std::string html, section(facts, title, sql));
    body += html;
  }
  if (!sets.empty())
    body +=
        "<h2>Batches</h2>\n<p>The sequences of each step, their documents, and where each document is used. "
        "Runs with the same batches share a page.</p>\n<ul>\n";
  for (const BatchSet& set : sets)
    body += fmt::format("<li><a href=\"{}.html\">{}</a>: {}</li>\n", set.id, set.id, runs_html(facts, set));
  return body + (sets.empty() ? "" : "</ul>\n");
}

std::string batches_body(const LabFacts& facts, const BatchSet& set) {
  std::string body =
      fmt::format("<p>What the steps {} to {} of these runs read: {}. A sequence has {} tokens.</p>\n",
                  set.first, set.last, runs_html(facts, set), set.seq_len);
  if (set.every > 1)
    body += fmt::format(
        "<p>The page has every {}th step, and the documents of these; {}.</p>\n", set.every,
        set.on_demand ? "any other is read when it is asked for"
                      : "<code>ostro lab serve</code> shows any other, and so does <code>ostro data batch "
                        "--explain</code>");
  body += set.has_texts() ? ""
                          : "<p>Texts are shown of sources whose licence the plan marks (show_texts); "
                            "here there are none.</p>\n";
  return body + fmt::format("<div data-batches=\"{}\" hidden></div>\n", set.id) + mixture_html(set) +
         first_step_html(set) + documents_html(set);
}

}  // namespace ostro::site
