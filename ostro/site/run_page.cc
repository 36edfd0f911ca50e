// The page of one run.
#include <fmt/format.h>

#include "ostro/base/html.h"
#include "ostro/lab/report/html_page.h"
#include "ostro/site/pages.h"
#include "ostro/site/run_extras.h"
#include "ostro/site/shell.h"

namespace ostro::site {

using lab::sql_literal;
using lab::value_text;

namespace {

constexpr int64_t kPointsOfRun = 1500;

std::string badges(const RunFacts& run) {
  std::string out =
      badge("recorded", "recorded", "losses, evaluations and configuration are in hash chains") +
      badge("declared", "phases' names, licences: declared", "the plan says them, and nothing checks them");
  return out + (run.verified.empty()
                    ? badge("warn", "computed again: nothing", "the journal knows of no audit of this run")
                    : badge("good", "computed again: " + run.verified, "by this lab; its journal says so"));
}

// What the run was made of, and what was made of it.
Result<std::string> lineage(const LabFacts& facts, const RunFacts& run, const std::string& literal) {
  std::string out = "<h2>Lineage</h2>\n<ul>\n";
  const lab::StepState& state = *facts.state.find(run.name);
  std::vector<const lab::Step*> steps = {state.step};
  std::set<std::string> seen;
  for (const lab::Step* needed : facts.plan.needed_by(*state.step, seen)) steps.push_back(needed);
  for (const lab::Step* step : steps) {
    const lab::StepState* s = facts.state.find(step->name);
    out += fmt::format("<li>{} <small>({}, content <code>{}</code>)</small>", facts.step_html(step->name),
                       step->kind->name, s == nullptr ? "" : lab::short_hash(s->content));
    std::string inputs;
    for (const auto& [parameter, input] : step->inputs)
      inputs += (inputs.empty() ? " made of " : ", ") + facts.step_html(input) + " (" +
                html_escaped(parameter) + ")";
    out += inputs + "</li>\n";
  }
  ASSIGN_OR_RETURN(const std::string forks,
                   forks_html(facts, fmt::format("run = {0} OR parent = {0}", literal)));
  return out + forks + "</ul>\n";
}

}  // namespace

Result<std::string> run_body(const LabFacts& facts, const RunFacts& run) {
  const std::string literal = sql_literal(run.name), where = "WHERE run = " + literal;
  ASSIGN_OR_RETURN(const auto head, facts.by_name("SELECT hash, steps FROM runs " + where));
  if (head.empty()) return not_found(fmt::format("{}: the record has no run of this name", run.name));
  ASSIGN_OR_RETURN(const std::string losses, loss_figure(facts, "run = " + literal, kPointsOfRun));
  std::string body = fmt::format(
      "<p>{}</p>\n<figure data-chart=\"{}\">{}</figure>\n<div class=\"bar\" data-check=\"{}\" "
      "data-head=\"{}\" data-steps=\"{}\"></div>\n<noscript><p>The hash chain is checked by a script, or by "
      "<code>ostro verify</code>.</p></noscript>\n",
      badges(run), run.id, losses, run.id, head.begin()->first, head.begin()->second);
  if (const std::string flops = flops_text(run); !flops.empty())
    body += fmt::format(
        "<p>Its training has {}, forward and backward with the update, counted from its programs.</p>\n",
        flops);
  const auto add = [&](const char* title, const std::string& sql) -> Status {
    ASSIGN_OR_RETURN(const std::string html, section(facts, title, sql));
    body += html;
    return {};
  };
  RETURN_IF_ERROR(
      add("Evaluations", "SELECT name, step, loss, bits_per_byte, tokens FROM evaluations " + where));
  RETURN_IF_ERROR(
      add("Evaluations by component",
          "SELECT p.name, p.step, p.component, p.loss, p.bits_per_byte, p.tokens FROM evaluation_parts "
          "p JOIN evaluations e ON e.name = p.name AND e.step = p.step WHERE e.run = " +
              literal));
  RETURN_IF_ERROR(
      add("Phases",
          fmt::format(
              "SELECT name, from_step, to_step, batch, first_rate, last_rate, tokens, changes FROM phases "
              "{0} AND (SELECT count(*) FROM phases {0}) > 1 ORDER BY from_step",
              where)));
  body += samples_html(facts, run);
  ASSIGN_OR_RETURN(const std::string made_of, lineage(facts, run, literal));
  body += made_of;
  if (!run.batches.empty())
    body += fmt::format(
        "<p><a href=\"{0}.html\">Batches</a>: the sequences of each step, and their documents.</p>\n",
        run.batches);
  RETURN_IF_ERROR(
      add("Identity", fmt::format("SELECT 'run hash' AS what, hash AS value FROM runs {0} UNION ALL SELECT "
                                  "'programs', program FROM runs {0} UNION ALL SELECT 'data', data FROM runs "
                                  "{0} UNION ALL SELECT 'data at its end', data_at_end FROM runs {0} AND "
                                  "data_at_end <> data UNION ALL SELECT 'tokenizer', tokenizer FROM runs {0} "
                                  "UNION ALL SELECT 'numerics version', numerics FROM runs {0}",
                                  where)));
  body += fmt::format(
      "<p>To compute the run again and compare, in the plan's folder: <code>ostro verify {}</code></p>\n",
      html_escaped(facts.without_folder(facts.state.made.at(run.name).folder)));
  RETURN_IF_ERROR(add("Replays", "SELECT verified, who AS \"by\" FROM replays WHERE name = " + literal));
  RETURN_IF_ERROR(add("Checkpoints", "SELECT step, state FROM checkpoints " + where + " ORDER BY step"));
  if (facts.measured) {
    ASSIGN_OR_RETURN(std::string sessions,
                     section(facts, "Sessions",
                             "SELECT session, started, ended, outcome, from_step, to_step, seconds, cpu FROM "
                             "sessions " +
                                 where + " ORDER BY session"));
    body += sessions.empty()
                ? ""
                : sessions + "<p>" + badge("measured", "measured", "clocks and machines said so") + "</p>\n";
  }
  RETURN_IF_ERROR(add("Configuration", "SELECT path, value FROM config " + where + " ORDER BY path"));
  return body;
}

}  // namespace ostro::site
