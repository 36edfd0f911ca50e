#include "ostro/site/live_section.h"

#include <fmt/format.h>

#include "ostro/base/html.h"
#include "ostro/chain/chain.h"
#include "ostro/chain/clock_text.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/report/figure.h"
#include "ostro/lab/report/html_page.h"
#include "ostro/page/numbers/axis.h"
#include "ostro/page/numbers/history.h"
#include "ostro/site/lab_facts.h"

namespace ostro::site {
namespace {

constexpr size_t kCurvePoints = 400;

lab::Line curve_of(const std::string& name, const page::Bins& bins) {
  lab::Line out{name, {}};
  for (const page::Bin& bin : bins.all()) out.points.emplace_back(bin.middle(), bin.mean());
  if (out.points.size() == 1) out.marks = out.points;  // a line of one point is not seen
  return out;
}

// Losses in training and on held-out text, from the chain and metrics.jsonl.
std::string loss_html(io::FileSystem& fs, const std::string& folder) {
  const page::History history = page::history_of(fs, folder, kCurvePoints);
  std::vector<lab::Line> lines;
  for (const auto& [metric, name] : {std::pair{page::kTrainLoss, "training"}, {"eval/loss", "held-out text"}})
    if (const auto found = history.metrics.find(metric);
        found != history.metrics.end() && !found->second.empty())
      lines.push_back(curve_of(name, found->second));
  if (lines.empty()) return "";
  return fmt::format("<figure>{}</figure>\n", lab::line_chart_svg("loss", "step", "", lines));
}

std::string numbers_html(const lab::BegunStep& begun) {
  const auto& run = *begun.run;
  std::string out;
  const auto add = [&](const char* name, const std::string& value) {
    out += fmt::format("<tr><th>{}</th>{}</tr>\n", name, lab::cell(html_escaped(value), true));
  };
  add("state", run.state);
  add("step", run.total > 0 ? fmt::format("{} of {}", run.step, run.total) : std::to_string(run.step));
  if (run.loss) add("loss", fmt::format("{:.4f}", *run.loss));
  if (run.tokens_per_second) add("tokens per second", page::short_number(*run.tokens_per_second));
  if (run.eta_seconds) add("time left", chain::duration_text(*run.eta_seconds));
  if (run.goodput && run.goodput->share() > 0)
    add("goodput", fmt::format("{:.1f} %", 100 * run.goodput->share()));
  return "<div class=\"scroll\"><table><tbody>\n" + out + "</tbody></table></div>\n";
}

}  // namespace

std::string live_html(io::FileSystem& fs, const lab::LiveLab& lab) {
  if (lab.state.is_done()) return "";
  std::string out = fmt::format("<h2>Now</h2>\n<p>{}</p>\n",
                                lab.driver.empty() ? std::string("Nobody works on the lab on this machine.")
                                                   : isolated(lab.driver) + " works on the lab.");
  for (const lab::BegunStep& begun : lab.begun) {
    out += fmt::format("<h3>{}</h3>\n", isolated(begun.step));
    if (!begun.run) {
      out += begun.is_at_work ? "<p>Is being done.</p>\n" : "<p>Was begun.</p>\n";
      continue;
    }
    out += numbers_html(begun);
    if (begun.run->total > 0)
      out += fmt::format("<p><progress max=\"{}\" value=\"{}\" aria-label=\"steps done\"></progress></p>\n",
                         begun.run->total, begun.run->step);
    out += loss_html(fs, begun.folder);
  }
  return out;
}

}  // namespace ostro::site
