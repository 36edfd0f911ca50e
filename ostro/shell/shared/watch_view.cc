#include "ostro/shell/shared/watch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ostro/chain/clock_text.h"
#include "ostro/page/numbers/axis.h"
#include "ostro/page/terminal/text_plot.h"
#include "ostro/run/report/console.h"

namespace ostro::cli {
namespace {

const page::Bins* numbers_of(const page::History& history, const char* name) {
  const auto found = history.metrics.find(name);
  return found == history.metrics.end() || found->second.empty() ? nullptr : &found->second;
}

// "[#####-----]  37.5 %", as wide as the terminal, but no wider than 60 characters.
std::string bar(const run::RunStatus& status, int columns) {
  constexpr int kWidest = 50, kBeside = 14;
  const int width = std::min(kWidest, columns - kBeside);
  if (status.total <= 0 || width < 8) return "";
  const double share =
      std::clamp(static_cast<double>(status.step) / static_cast<double>(status.total), 0.0, 1.0);
  const auto done = static_cast<size_t>(share * width);
  return fmt::format("[{}{}]  {:.1f} %\n", std::string(done, '#'),
                     std::string(static_cast<size_t>(width) - done, '-'), 100 * share);
}

}  // namespace

std::string numbers_text(const run::RunStatus& status, const page::History& history) {
  std::string out;
  const auto add = [&](const std::string& field) { out += (out.empty() ? "" : "  ") + field; };
  if (status.loss) add(fmt::format("loss {:.4f}", *status.loss));
  if (const page::Bins* held_out = numbers_of(history, "eval/loss"))
    add(fmt::format("held-out {:.4f}", held_out->last().value));
  if (status.eta_seconds) add("ETA " + chain::duration_text(*status.eta_seconds));
  if (status.tokens_per_second) add(page::short_number(*status.tokens_per_second) + " tokens/s");
  if (const page::Bins* mfu = numbers_of(history, "throughput/mfu"))
    add(fmt::format("MFU {:.1f}%", 100 * mfu->last().value));
  if (const page::Bins* memory = numbers_of(history, "memory/resident_bytes"))
    add(fmt::format("{:.2f} GB", memory->last().value * 1e-9));
  if (status.job_is_live)
    add(fmt::format("{} worker{}", status.job->size(), status.job->size() == 1 ? "" : "s"));
  return out;
}

std::string steps_text(const run::RunStatus& status) {
  return status.total > 0 ? fmt::format("step {} of {}", status.step, status.total)
                          : fmt::format("step {}", status.step);
}

std::string loss_plot(const page::History& history, const page::Terminal& terminal) {
  std::vector<page::Curve> curves;
  for (const char* name : {page::kTrainLoss, "eval/loss"})
    if (const page::Bins* bins = numbers_of(history, name)) curves.push_back({name, bins, curves.size() > 0});
  if (curves.empty()) return "";
  return "\n" + page::text_plot(curves, history.first_step, history.last_step, terminal);
}

std::string fitting_lines(const std::string& text, const std::string& hint, int rows) {
  std::string kept;
  int lines = 1;
  for (size_t at = 0; at < text.size() && lines < std::max(rows, 1); ++lines) {
    const size_t end = text.find('\n', at) + 1;
    kept += text.substr(at, end - at);
    at = end;
  }
  return hint.empty() ? kept : kept + hint + "\n";
}

std::string watch_screen(const run::RunStatus& status, const page::History& history,
                         const page::Terminal& terminal, int rows) {
  const auto fit = [&](const std::string& line) { return run::fitted(line, terminal.columns) + "\n"; };
  std::string out = fit(fmt::format("{}: {}  {}", status.directory, status.state, steps_text(status)));
  out += bar(status, terminal.columns) + fit(numbers_text(status, history)) + loss_plot(history, terminal);
  return fitting_lines(
      out, may_go_on(status) ? run::fitted("Ctrl-C ends this view; the run goes on", terminal.columns) : "",
      rows);
}

std::string watch_line(const run::RunStatus& status, const page::History& history) {
  return fmt::format("{}: {}  {}  {}\n", status.directory, status.state, steps_text(status),
                     numbers_text(status, history));
}

bool may_go_on(const run::RunStatus& status) {
  return status.state == "running" || status.state == "waiting" || status.state == "elsewhere";
}

void Pace::drawn(Clock::time_point begin, Clock::time_point end) {
  constexpr int kTimes = 20;
  drawn_ = true;
  next_ = end + std::max<Clock::duration>(least_, kTimes * (end - begin));
}

std::chrono::milliseconds Pace::left(Clock::time_point now) const {
  if (is_due(now)) return std::chrono::milliseconds(0);
  return std::chrono::ceil<std::chrono::milliseconds>(next_ - now);
}

}  // namespace ostro::cli
