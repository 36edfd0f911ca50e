#include "ostro/lab_commands/lab_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/one_line.h"
#include "ostro/run/report/console.h"
#include "ostro/shell/shared/watch_view.h"

namespace ostro::cli {
namespace {

constexpr int kPlotRows = 14;   // what a curve takes, about
constexpr int kLeastSteps = 6;  // rows of steps that stay beside a curve

std::string head_text(const lab::Plan& plan, const lab::LiveLab& lab) {
  return fmt::format("{}: {}; {}", plan.name, lab.state.done_text(),
                     lab.driver.empty() ? "nobody works on it here" : one_line(lab.driver) + " works on it");
}

// What is known of a training that was begun.
std::string run_text(const lab::BegunStep& begun, const LiveHistories& histories) {
  if (!begun.run) return "";
  const auto history = histories.find(begun.step);
  return fmt::format(
      "{}  {}", steps_text(*begun.run),
      numbers_text(*begun.run, history == histories.end() ? page::History() : history->second));
}

std::string step_line(const lab::LiveLab& lab, const lab::StepState& s, const LiveHistories& histories) {
  const lab::BegunStep* begun = lab.find(s.step->name);
  const bool says_why = s.action == lab::Action::kWait || s.action == lab::Action::kFail;
  const std::string more = begun != nullptr ? run_text(*begun, histories)
                           : says_why       ? one_line(s.reason)
                                            : "";
  return fmt::format("  {:<8} {}{}{}", lab::live_state(lab, s), one_line(s.step->name),
                     more.empty() ? "" : ": ", more);
}

std::vector<std::string> step_lines(const lab::LiveLab& lab, const LiveHistories& histories, size_t most) {
  std::vector<std::string> all, open;
  for (const lab::StepState& s : lab.state.steps) {
    all.push_back(step_line(lab, s, histories));
    if (!s.is_settled()) open.push_back(all.back());
  }
  if (all.size() <= most) return all;
  if (open.size() > most) {
    const size_t kept = most - 1;
    const std::string rest = fmt::format("  and {} more", open.size() - kept);
    open.resize(kept);
    open.push_back(rest);
  }
  return open;
}

}  // namespace

std::string lab_screen(const lab::Plan& plan, const lab::LiveLab& lab, const LiveHistories& histories,
                       const page::Terminal& terminal, int rows) {
  const auto fit = [&](const std::string& line) { return run::fitted(line, terminal.columns) + "\n"; };
  const bool has_plot = !histories.empty() && rows > kPlotRows + kLeastSteps;
  const auto most = static_cast<size_t>(std::max(2, rows - 3 - (has_plot ? kPlotRows : 0)));
  std::string out = fit(head_text(plan, lab)) + fit(one_line(plan.question));
  for (const std::string& line : step_lines(lab, histories, most)) out += fit(line);
  if (has_plot) out += fit(histories.begin()->first + ":") + loss_plot(histories.begin()->second, terminal);
  return fitting_lines(
      out, !lab.driver.empty() ? run::fitted("Ctrl-C ends this view; the lab goes on", terminal.columns) : "",
      rows);
}

std::string lab_line(const lab::Plan& plan, const lab::LiveLab& lab, const LiveHistories& histories) {
  std::string out = head_text(plan, lab);
  for (const lab::BegunStep& begun : lab.begun) {
    const std::string numbers = run_text(begun, histories);
    out += fmt::format("; {}{}{}", one_line(begun.step), numbers.empty() ? "" : ": ", numbers);
  }
  return out + "\n";
}

int64_t lab_progress(const lab::LiveLab& lab) {
  auto out = static_cast<int64_t>(lab.state.done() + lab.state.left_out());
  for (const lab::BegunStep& begun : lab.begun) out += 1'000'003 * (1 + (begun.run ? begun.run->step : 0));
  return out;
}

}  // namespace ostro::cli
