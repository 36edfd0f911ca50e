#include "ostro/page/html/page_charts.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/page/html/chart.h"
#include "ostro/page/html/page_parts.h"
#include "ostro/page/numbers/axis.h"

namespace ostro::page {
namespace {

// A kind of number that has a chart of its own.
struct Kind {
  const char *title, *unit, *metric;
  Format format = Format::kPlain;
};
constexpr Kind kKinds[] = {
    {"Gradient norm", "before clipping", "train/grad_norm"},
    {"Learning rate", "", "train/learning_rate"},
    {"Tokens per second", "over about 30 s", "throughput/tokens_per_second"},
    {"Model FLOPs utilization", "of the measured peak", "throughput/mfu", Format::kPercent},
    {"Memory", "of the process", "memory/resident_bytes", Format::kBytes},
    {"Memory of the device", "in use at most, so far", "memory/device_peak_bytes", Format::kBytes},
};
constexpr Kind kResults[] = {
    {"Training loss", "nats a token", kTrainLoss},
    {"Held-out loss", "nats a token", "eval/loss"},
    {"Held-out bits per byte", "", "eval/bits_per_byte"},
    {"Held-out accuracy", "of pairs", "eval/accuracy", Format::kPercent},
};

// The curves "eval/COMPONENT/what", of the first components by name: as many as there are colours.
std::vector<Curve> by_component(const RunView& view, const std::string& what) {
  std::vector<Curve> out;
  const std::string begin = "eval/", end = "/" + what;
  for (const auto& [name, bins] : view.history.metrics)
    if (out.size() < kCurveColours && name.size() > begin.size() + end.size() && name.starts_with(begin) &&
        name.ends_with(end) && !bins.empty())
      out.push_back({name, &bins, true, name.substr(begin.size(), name.size() - begin.size() - end.size())});
  return out;
}

std::vector<int64_t> resumes_of(const RunView& view) {
  std::vector<int64_t> out;
  if (!view.record) return out;
  const auto& sessions = view.record->sessions;
  for (size_t i = 1; i < sessions.size(); ++i)
    if (sessions[i].from_step > 0 && (out.empty() || out.back() != sessions[i].from_step))
      out.push_back(sessions[i].from_step);
  if (out.size() > kRows) out.erase(out.begin(), out.end() - kRows);
  return out;
}

std::vector<Level> levels_of(const RunView& view) {
  if (!view.facts || view.facts->data.size() != 1 || !view.facts->data[0].unigram) return {};
  const double value = view.facts->data[0].unigram->nats_per_token;
  return {{fmt::format("held-out text by token frequencies: {:.4f}", value), value}};
}

std::string grid_of(const std::vector<Chart>& charts) {
  std::string out = "<div class=\"controls\"></div>\n<div class=\"charts\">\n";
  bool first = true;
  for (const Chart& chart : charts) {
    const std::string figure = chart_html(chart);
    if (figure.empty()) continue;
    out += first ? "<div class=\"wide\">" + figure + "</div>\n" : figure;
    first = false;
  }
  return out + "</div>\n";
}

// What the curves are, below them.
std::string footnote(const RunView& view, bool resumed) {
  const History& history = view.history;
  std::string out;
  if (const Bins* loss = find_metric(view, kTrainLoss); loss != nullptr && loss->width() > 1)
    out += fmt::format("A point is the mean of up to {} steps, and the band is their range. ",
                       grouped(loss->width()));
  if (resumed) out += "A dashed vertical line is a step after which the run was resumed. ";
  if (!view.metrics_error.empty())
    return out + fmt::format(
                     "</p><p class=\"warn\">The metrics cannot be read, the loss is taken from the chain: {}",
                     cut(view.metrics_error, kLongestWord));
  if (!history.has_metrics) return out + "There is no metrics.jsonl. The loss is taken from the chain.";
  out +=
      "Training loss and tokens are those of the hash chain. All other curves come from metrics.jsonl, which "
      "the run hash does not cover.";
  int64_t not_finite = 0;
  for (const auto& [name, bins] : history.metrics) not_finite += bins.not_finite();
  if (not_finite > 0)
    out += fmt::format(" {} values that are not finite are not shown.", grouped(not_finite));
  return out;
}

void add_axis(std::string& out, const char* name, const std::vector<Reached>& points) {
  if (points.empty()) return;
  out += fmt::format("{}\"{}\":[", out.back() == '{' ? "" : ",", name);
  for (size_t i = 0; i < points.size(); ++i)
    out += fmt::format("{}[{},{:.7g}]", i == 0 ? "" : ",", points[i].step, points[i].amount);
  out += "]";
}

}  // namespace

const Bins* find_metric(const RunView& view, const std::string& name) {
  const auto found = view.history.metrics.find(name);
  return found == view.history.metrics.end() || found->second.empty() ? nullptr : &found->second;
}

std::string axes_json(std::span<const RunView> runs) {
  std::string out = "[";
  for (const RunView& view : runs) {
    const History& history = view.history;
    out += out.size() > 1 ? ",{" : "{";
    add_axis(out, "tokens", sums_by_step(history.step_tokens, history.first_step, history.last_step));
    if (const Bins* seconds = find_metric(view, "throughput/step_seconds"))
      add_axis(out, "seconds", sums_by_step(*seconds, history.first_step, history.last_step));
    out += "}";
  }
  return out + "]";
}

std::string charts_section(const RunView& view) {
  const History& history = view.history;
  if (history.last_step < history.first_step) return heading("Curves") + "<p>No step was done yet.</p>\n";
  std::vector<Chart> all;
  const std::vector<int64_t> resumes = resumes_of(view);
  const auto add = [&](const Kind& kind, std::vector<Curve> curves, int64_t first) -> Chart& {
    all.push_back(
        {kind.title, kind.unit, std::move(curves), first, history.last_step, kind.format, {}, resumes});
    return all.back();
  };
  std::vector<Curve> losses;
  if (const Bins* loss = find_metric(view, kTrainLoss))
    losses.push_back({kTrainLoss, loss, false, "training"});
  if (const Bins* loss = find_metric(view, "eval/loss"))
    losses.push_back({"eval/loss", loss, true, "held out"});
  add({"Loss", "nats a token", ""}, losses, history.first_step).levels = levels_of(view);
  // In a chart of all steps, the large losses of the first ones hide how the loss changes later.
  constexpr int64_t kManySteps = 40;
  const int64_t steps = history.last_step - history.first_step + 1;
  if (steps >= kManySteps)
    add({"Loss, second half", "nats a token", ""}, losses, history.first_step + steps / 2);
  add({"Held-out loss by component", "nats a token", ""}, by_component(view, "loss"), history.first_step);
  std::vector<Curve> bits = by_component(view, "bits_per_byte");
  if (const Bins* whole = find_metric(view, "eval/bits_per_byte"))
    bits.insert(bits.begin(), {"eval/bits_per_byte", whole, true, "all"});
  add({"Held-out bits per byte", "", ""}, std::move(bits), history.first_step);
  std::vector<Curve> accuracy = by_component(view, "accuracy");
  if (const Bins* whole = find_metric(view, "eval/accuracy"))
    accuracy.insert(accuracy.begin(), {"eval/accuracy", whole, true, "all"});
  add(kResults[3], std::move(accuracy), history.first_step);
  for (const Kind& kind : kKinds)
    if (const Bins* bins = find_metric(view, kind.metric))
      add(kind, {{kind.metric, bins, false}}, history.first_step);
  return heading("Curves") + grid_of(all) +
         fmt::format("<p class=\"soft\">{}</p>\n", footnote(view, !resumes.empty()));
}

std::string compared_charts(std::span<const RunView> runs, std::span<const std::string> names) {
  std::vector<Chart> all;
  int64_t first = INT64_MAX, last = 0;
  for (const RunView& view : runs) {
    first = std::min(first, view.history.first_step);
    last = std::max(last, view.history.last_step);
  }
  const auto add = [&](const Kind& kind) {
    Chart chart{kind.title, kind.unit, {}, first, last, kind.format};
    chart.bands = false;
    for (size_t i = 0; i < runs.size(); ++i)
      if (const Bins* bins = find_metric(runs[i], kind.metric))
        chart.curves.push_back(
            {kind.metric, bins, std::string_view(kind.metric).starts_with("eval/"), names[i], i});
    all.push_back(std::move(chart));
  };
  for (const Kind& kind : kResults) add(kind);
  for (const Kind& kind : kKinds) add(kind);
  return last == 0 ? "<p>No step was done yet.</p>\n" : heading("Curves") + grid_of(all);
}

}  // namespace ostro::page
