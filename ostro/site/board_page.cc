// The page of the boards on which a lab's trainings are compared with others.
#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/html.h"
#include "ostro/lab/report/html_page.h"
#include "ostro/page/numbers/axis.h"
#include "ostro/site/pages.h"
#include "ostro/site/shell.h"

namespace ostro::site {

using board::BoardEntry;
using lab::cell;
using lab::shown_text;

namespace {

std::string row_of(const char* name, const std::string& html) {
  return fmt::format("<tr><th>{}</th>{}</tr>\n", name, cell(html));
}

std::string track_html(const board::Board& board) {
  const board::Track& track = board.track();
  std::string data, files;
  for (const std::string& root : track.data) data += fmt::format("<code>{}</code> ", html_escaped(root));
  for (const std::string& file : track.evaluation.files)
    files += (files.empty() ? "" : ", ") + isolated(file);
  std::string out = "<div class=\"scroll\"><table><tbody>\n";
  out +=
      row_of("data, by the roots of its rows", data) +
      row_of("tokenizer", fmt::format("<code>{}</code>", html_escaped(track.tokenizer))) +
      row_of("scored on", fmt::format("{} <small>SHA-256 <code>{}</code></small>", files,
                                      html_escaped(track.evaluation.sha256))) +
      row_of("a training may have", fmt::format("{:.6g} FLOPs", track.flops)) +
      row_of("a scoring may have", fmt::format("{:.6g} FLOPs", track.score_budget())) +
      row_of("steps that are replayed",
             track.steps ? fmt::format("{} drawn ones", page::grouped(*track.steps)) : std::string("all")) +
      row_of("head of the board", fmt::format("<code>{}</code>", html_escaped(board.head())));
  return out + "</tbody></table></div>\n";
}

std::string replay_html(const BoardEntry& entry, const board::Track& track) {
  if (!entry.is_checked) return "not checked";
  if (!entry.replayed && entry.counts)
    return badge("warn", "not recorded", "an earlier version checked it, which did not write how many steps");
  if (!entry.replayed) return badge("warn", "not replayed", "the check ended before a step was done again");
  const auto& [steps, all] = *entry.replayed;
  const bool is_drawn = track.steps && *track.steps < all;
  if (!is_drawn && steps == all)
    return badge("good", fmt::format("all {} steps", page::grouped(all)),
                 "each was done again, with equal bits");
  return badge(is_drawn ? "good" : "warn",
               fmt::format("{} of {} steps", page::grouped(steps), page::grouped(all)),
               is_drawn ? "the first, the last, drawn ones and those before them, down to a state"
                        : "the check ended at a step that differs");
}

std::string outcome_html(const BoardEntry& entry) {
  if (!entry.is_checked) return "<span class=\"wait\">not checked</span>";
  if (entry.counts) return "<span class=\"good\">counts</span>";
  std::string out = "<span class=\"bad\">refused</span>";
  for (size_t i = 0; i < entry.refused.size(); ++i)
    out += fmt::format("<br><b>{}</b>{}", html_escaped(entry.refused[i]),
                       i < entry.reasons.size() ? ": " + shown_text(entry.reasons[i]) : "");
  return out;
}

// The lab's run that the entry is, if it is one.
std::string run_html(const BoardEntry& entry, const std::map<std::string, std::string>& runs,
                     const LabFacts& facts) {
  const std::string hash = fmt::format("<code>{}</code>", html_escaped(entry.head));
  const auto run = runs.find(entry.head);
  return run == runs.end() ? hash : hash + " " + facts.step_html(run->second);
}

}  // namespace

Result<std::string> boards_body(const LabFacts& facts, const std::vector<board::Board>& boards) {
  ASSIGN_OR_RETURN(const auto runs, facts.by_name("SELECT hash, run FROM runs"));
  std::string out;
  for (const board::Board& board : boards) {
    out += fmt::format("<h2>Track {}</h2>\n{}", isolated(board.track().name), track_html(board));
    out +=
        "<div class=\"scroll\"><table><thead><tr><th>place</th><th>entry</th><th>bits per "
        "byte</th><th>FLOPs</th>"
        "<th>replayed</th><th>outcome</th><th>run hash</th></tr></thead><tbody>\n";
    size_t place = 0;
    for (const size_t i : board::ranked(board)) {
      const BoardEntry& entry = board.entries()[i];
      out += fmt::format(
          "<tr>{}{}{}{}{}{}{}</tr>\n", cell(entry.counts ? std::to_string(++place) : "", true),
          cell(std::to_string(i + 1), true),
          cell(entry.counts ? fmt::format("{:.6f}", entry.bits_per_byte) : "", true),
          cell(entry.is_checked && entry.flops > 0 ? fmt::format("{:.6g}", entry.flops) : "", true),
          cell(replay_html(entry, board.track())), cell(outcome_html(entry)),
          cell(run_html(entry, runs, facts)));
    }
    out += "</tbody></table></div>\n";
  }
  return out +
         "<p>A board is a hash chain; whoever knows its head sees a change. <code>ostro lab board "
         "show</code> "
         "checks the chain, and <code>ostro lab board check</code> an entry.</p>\n";
}

}  // namespace ostro::site
