#include "ostro/page/html/page.h"

#include <fmt/format.h>

#include "ostro/base/html.h"
#include "ostro/base/sha256.h"
#include "ostro/chain/clock_text.h"
#include "ostro/page/html/chart.h"
#include "ostro/page/html/page_parts.h"
#include "ostro/page/html/page_style.h"
#include "ostro/page/numbers/axis.h"
#include "ostro/tokenizer/unicode/base64.h"

namespace ostro::page {
namespace {

// If the escaping should ever fail: the browser still fetches nothing and runs no script but ours.
std::string policy() {
  const Sha256Digest digest = sha256(std::string_view(kPageScript));
  const std::string bytes(digest.begin(), digest.end());
  return fmt::format("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'",
                     tokenizer::base64_encode(bytes));
}

std::string state_chip(const RunView& view) {
  std::string outcome = "record damaged", colour = "warn";
  if (view.record && !view.record->sessions.empty()) {
    outcome = view.record->sessions.back().outcome;
    if (outcome == "running") outcome = "running, or killed";
    colour = outcome == "finished" ? "good" : outcome.starts_with("failed") ? "bad" : "warn";
  }
  return fmt::format("<span class=\"state {}\">{}</span>", colour, cut(outcome, kLongestWord));
}

const Bins* find(const RunView& view, const std::string& name) {
  const auto found = view.history.metrics.find(name);
  return found == view.history.metrics.end() || found->second.empty() ? nullptr : &found->second;
}

std::string tile(const std::string& name, const std::string& value) {
  return fmt::format("<div><small>{}</small><b>{}</b></div>", name, value);
}

std::string tiles(const RunView& view) {
  const int64_t total = view.total_steps();
  std::string out =
      tile("steps", grouped(view.chain.last_step()) +
                        (total > 0 ? fmt::format(" <small>of {}</small>", grouped(total)) : ""));
  if (view.parameters > 0) out += tile("parameters", short_number(static_cast<double>(view.parameters)));
  if (view.history.tokens > 0) out += tile("tokens trained", short_number(view.history.tokens));
  const auto last = [&](const char* name, const char* what, const char* format) {
    if (const Bins* bins = find(view, name))
      out += tile(what, fmt::format(fmt::runtime(format), bins->last().value));
  };
  last(kTrainLoss, "training loss", "{:.4f}");
  last("eval/loss", "held-out loss", "{:.4f}");
  last("eval/bits_per_byte", "bits per byte", "{:.4f}");
  if (const auto seconds = run_seconds(view)) out += tile("time", chain::duration_text(*seconds));
  return fmt::format("<div class=\"tiles\">{}</div>\n", out);
}

// "eval/what", then "eval/COMPONENT/what" of the components, `limit` curves at most.
std::vector<Curve> held_out(const RunView& view, const std::string& what, size_t limit) {
  std::vector<Curve> out;
  if (const Bins* all = find(view, "eval/" + what)) out.push_back({"eval/" + what, all, true});
  for (const auto& [name, bins] : view.history.metrics)
    if (out.size() < limit && name != "eval/" + what && name.starts_with("eval/") &&
        name.ends_with("/" + what) && !bins.empty())
      out.push_back({name, &bins, true});
  return out;
}

std::string charts(const RunView& view) {
  const History& history = view.history;
  if (history.last_step < history.first_step) return "<p>No step was done yet.</p>\n";
  std::vector<Chart> all;
  const auto add = [&](const char* title, const char* unit, std::vector<Curve> curves, int64_t first) {
    all.push_back({title, unit, std::move(curves), first, history.last_step});
  };
  std::vector<Curve> losses;
  if (const Bins* loss = find(view, kTrainLoss)) losses.push_back({kTrainLoss, loss, false});
  for (Curve& curve : held_out(view, "loss", kCurveColours - 1)) losses.push_back(std::move(curve));
  add("Loss", "nats a token", losses, history.first_step);
  // In a chart of all steps, the large losses of the first ones hide how the loss changes later.
  constexpr int64_t kManySteps = 40;
  const int64_t steps = history.last_step - history.first_step + 1;
  if (steps >= kManySteps) add("Loss, second half", "nats a token", losses, history.first_step + steps / 2);
  add("Held-out bits per byte", "", held_out(view, "bits_per_byte", kCurveColours), history.first_step);
  const auto one = [&](const char* title, const char* unit, const char* name) {
    if (const Bins* bins = find(view, name)) add(title, unit, {{name, bins, false}}, history.first_step);
  };
  one("Gradient norm", "before clipping", "train/grad_norm");
  one("Learning rate", "", "train/learning_rate");
  one("Tokens per second", "over about 30 s", "throughput/tokens_per_second");
  one("Memory", "bytes of the process", "memory/resident_bytes");
  std::string out;
  if (const Bins* loss = find(view, kTrainLoss); loss != nullptr && loss->width() > 1)
    out += fmt::format(
        "<p class=\"soft\">The horizontal axis is the step. A point is the mean of up to {} steps, the band "
        "is "
        "their range.</p>\n",
        grouped(loss->width()));
  else
    out += "<p class=\"soft\">The horizontal axis is the step.</p>\n";
  out += "<div class=\"charts\">\n";
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string figure = chart_html(all[i]);
    if (figure.empty()) continue;
    out += i == 0 ? "<div class=\"wide\">" + figure + "</div>\n" : figure;
  }
  out += "</div>\n";
  if (!view.metrics_error.empty())
    out += fmt::format(
        "<p class=\"warn\">The metrics cannot be read, the loss is taken from the chain: {}</p>\n",
        cut(view.metrics_error, kLongestWord));
  else if (!history.has_metrics)
    out += "<p class=\"soft\">There is no metrics.jsonl. The loss is taken from the chain.</p>\n";
  int64_t not_finite = 0;
  for (const auto& [name, bins] : history.metrics) not_finite += bins.not_finite();
  if (not_finite > 0)
    out += fmt::format("<p class=\"soft\">{} values that are not finite are not shown.</p>\n",
                       grouped(not_finite));
  return out;
}

}  // namespace

std::string page_html(const RunView& view) {
  const std::string name = html_escaped(view.name());
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"ostro\"><title>{} · "
      "Ostro</title>\n<style>{}</style></head><body><main>\n",
      policy(), name, kPageStyle);
  out += fmt::format(
      "<header><div class=\"line\"><h1>{}</h1>{}</div>\n"
      "<p class=\"soft\">run hash <span class=\"hash\">{}</span></p></header>\n",
      name, state_chip(view), view.chain.head());
  out += tiles(view) + charts(view) + samples_section(view) + data_section(view) + time_section(view) +
         hashes_section(view) + checkpoints_section(view) + sessions_section(view) + config_section(view);
  out += fmt::format(
      "<footer>This page is only a view of the run. To check the run, replay it or a part of it: <code>ostro "
      "verify</code> compares the result with these "
      "hashes.</footer>\n</main><script>{}</script></body></html>\n",
      kPageScript);
  return out;
}

}  // namespace ostro::page
