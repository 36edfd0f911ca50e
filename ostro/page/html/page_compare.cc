// The page of several runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/data_record.h"
#include "ostro/page/html/chart.h"
#include "ostro/page/html/page.h"
#include "ostro/page/html/page_charts.h"
#include "ostro/page/html/page_parts.h"
#include "ostro/page/numbers/axis.h"

namespace ostro::page {
namespace {

std::string last_value(const RunView& view, const char* metric) {
  const Bins* bins = find_metric(view, metric);
  return bins == nullptr ? "" : fmt::format("{:.4f}", bins->last().value);
}

std::string key(size_t run, const std::string& name) {
  return fmt::format("<span class=\"key c{}{}\">{}</span>", run % kCurveColours,
                     run >= kCurveColours ? " again" : "", cut(name, kLongestWord));
}

// A row for each run; the one with the lowest held-out loss stands out. Of what is measured on held-out text
// there are columns where a run has it.
std::string results(std::span<const RunView> runs, std::span<const std::string> names) {
  constexpr std::pair<const char*, const char*> kHeldOut[] = {{"eval/loss", "held-out loss"},
                                                              {"eval/bits_per_byte", "bits per byte"}};
  std::vector<const char*> columns;
  std::string out =
      "<div class=\"scroll\"><table><thead><tr><th>run</th><th class=\"n\">steps</th><th "
      "class=\"n\">parameters</th><th class=\"n\">tokens</th><th class=\"n\">training loss</th>";
  for (const auto& [metric, title] : kHeldOut) {
    if (std::none_of(runs.begin(), runs.end(),
                     [name = metric](const RunView& view) { return find_metric(view, name) != nullptr; }))
      continue;
    columns.push_back(metric);
    out += fmt::format("<th class=\"n\">{}</th>", title);
  }
  out += "<th>state</th><th>run hash</th></tr></thead>\n";
  const auto held_out = [&](size_t i) {
    const Bins* loss = find_metric(runs[i], "eval/loss");
    return loss == nullptr ? HUGE_VAL : loss->last().value;
  };
  size_t best = 0;
  for (size_t i = 1; i < runs.size(); ++i)
    if (held_out(i) < held_out(best)) best = i;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunView& view = runs[i];
    std::string held_out_cells;
    for (const char* metric : columns)
      held_out_cells += fmt::format("<td class=\"n\">{}</td>", last_value(view, metric));
    out += fmt::format(
        "<tr{}><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td>{}<td>{}</td><td><code title=\"{}\">{}</code></td></tr>\n",
        i == best && held_out(i) < HUGE_VAL ? " class=\"best\"" : "", key(i, names[i]),
        grouped(view.chain.last_step()),
        view.parameters > 0 ? short_number(static_cast<double>(view.parameters)) : "",
        short_number(view.history.tokens), last_value(view, kTrainLoss), held_out_cells,
        cut(view.state(), kLongestWord), view.chain.head(), view.chain.head().substr(0, 12));
  }
  return heading("Results") + out + "</table></div>\n";
}

// The options of the canonical configuration as "section.key" and value.
void flatten(const nlohmann::ordered_json& value, const std::string& name,
             std::map<std::string, std::string>& out) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, item] : value.items()) flatten(item, name.empty() ? key : name + "." + key, out);
    return;
  }
  out[name] = value.is_string() ? value.get<std::string>() : value.dump();
}

std::string differences(std::span<const RunView> runs, std::span<const std::string> names) {
  std::vector<std::map<std::string, std::string>> options(runs.size());
  std::map<std::string, std::string> all;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto json = nlohmann::ordered_json::parse(chain::decimal_json(runs[i].config_now), nullptr, false);
    if (json.is_object()) flatten(json, "", options[i]);
    options[i]["data (hash)"] = chain::data_records(runs[i].chain).back().hash.substr(0, 12);
    options[i]["tokenizer (hash)"] = runs[i].chain.genesis().tokenizer_hash.substr(0, 12);
    all.insert(options[i].begin(), options[i].end());
  }
  std::string rows;
  size_t shown = 0, more = 0;
  for (const auto& [option, any] : all) {
    bool same = true;
    for (const auto& of_run : options) {
      const auto found = of_run.find(option);
      same = same && found != of_run.end() && found->second == any;
    }
    if (same) continue;
    if (shown++ >= kRows) {
      ++more;
      continue;
    }
    rows += fmt::format("<tr><th>{}</th>", cut(option, kLongestWord));
    for (const auto& of_run : options) {
      const auto found = of_run.find(option);
      rows += fmt::format("<td>{}</td>", found == of_run.end() ? "" : cut(found->second, kLongestWord));
    }
    rows += "</tr>\n";
  }
  std::string out = heading("Differences");
  if (rows.empty())
    return out + "<p>The configurations are equal in every option that the run hash depends on.</p>\n";
  out += "<div class=\"scroll\"><table><thead><tr><th>option</th>";
  for (size_t i = 0; i < runs.size(); ++i) out += fmt::format("<th>{}</th>", key(i, names[i]));
  out += "</tr></thead>\n" + rows + "</table></div>\n";
  if (more > 0) out += fmt::format("<p class=\"soft\">and {} more.</p>\n", more);
  return out;
}

}  // namespace

std::string comparison_html(std::span<const RunView> runs, std::span<const std::string> names) {
  std::string heads;
  for (const RunView& view : runs) heads += view.chain.head();
  const std::string sections = results(runs, names) + compared_charts(runs, names) + differences(runs, names);
  const std::string title = fmt::format("{} runs", runs.size());
  return whole_page({title,
                     fmt::format("<header><div class=\"line\"><h1>{}</h1></div></header>\n", title) +
                         contents(sections) + sections +
                         "<footer>A click on a name in a legend takes its run out of the curves.</footer>\n",
                     axes_json(runs), sha256_hex(heads), PageKind::kFile});
}

}  // namespace ostro::page
