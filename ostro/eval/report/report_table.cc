#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ostro/eval/report/report.h"

namespace ostro::eval {
namespace {

// A row of figures: one estimate of every checkpoint, and of the difference.
struct Line {
  std::string name, measure;
  std::vector<Estimate> values;
  std::optional<Estimate> difference;
};

std::vector<Line> entry_lines(const std::vector<const std::vector<Entry>*>& all) {
  std::vector<Line> out;
  for (size_t i = 0; i < all[0]->size(); ++i)
    for (const Measure& measure : (*all[0])[i].measures) {
      Line line{(*all[0])[i].name, measure.name, {}, {}};
      for (const auto* entries : all)
        if (const Measure* m = (*entries)[i].find(measure.name)) line.values.push_back(estimate(m->samples));
      Samples pairs;
      const Measure* other = all.size() == 2 ? (*all[1])[i].find(measure.name) : nullptr;
      if (other != nullptr && difference(measure.samples, other->samples, pairs))
        line.difference = estimate(pairs);
      out.push_back(std::move(line));
    }
  return out;
}

std::vector<Line> average_lines(const std::vector<const std::vector<Entry>*>& all,
                                const std::vector<Entry>& pairs) {
  std::vector<Line> out;
  const auto pair_nodes = tag_nodes(pairs);
  for (const auto& [path, members] : tag_nodes(*all[0]))
    for (const auto& [measure, samples] : measures_at(*all[0], members)) {
      if (samples.size() < 2) continue;
      for (const bool macro : {true, false}) {
        const auto average = [macro](const auto& s) { return macro ? macro_average(s) : micro_average(s); };
        const auto find = [&, name = measure](const std::vector<Entry>& entries,
                                              const std::vector<size_t>& which) -> std::optional<Estimate> {
          for (const auto& [other, found] : measures_at(entries, which))
            if (other == name) return average(found);
          return std::nullopt;
        };
        Line line{fmt::format("{} ({} of {})", path.empty() ? "all" : path, macro ? "macro" : "micro",
                              samples.size()),
                  measure,
                  {},
                  {}};
        for (const auto* entries : all)
          if (const auto value = find(*entries, members)) line.values.push_back(*value);
        if (const auto node = pair_nodes.find(path); all.size() == 2 && node != pair_nodes.end())
          line.difference = find(pairs, node->second);
        out.push_back(std::move(line));
      }
    }
  return out;
}

std::string section(const std::string& title, const std::vector<Line>& lines, const Report& report) {
  if (lines.empty()) return "";
  size_t name = title.size(), measure = 0;
  for (const Line& line : lines)
    name = std::max(name, line.name.size()), measure = std::max(measure, line.measure.size());
  const bool one = report.checkpoints.size() == 1, two = report.checkpoints.size() == 2;
  std::string out = fmt::format("{:<{}}  {:<{}}", title, name, "", measure);
  for (const Evaluated& e : report.checkpoints)
    out += fmt::format("  {:>10}", fmt::format("step {}", e.step));
  out += one ? "  standard error\n" : two ? "  difference  95 % interval\n" : "\n";
  for (const Line& line : lines) {
    out += fmt::format("{:<{}}  {:<{}}", line.name, name, line.measure, measure);
    for (const Estimate& e : line.values) out += fmt::format("  {:>10.4f}", e.value);
    if (one) {
      const auto error = line.values[0].standard_error;
      out += error ? fmt::format("  {:.4f}", *error) : "  -";
    }
    if (two && line.difference) {
      const Estimate& d = *line.difference;
      out += fmt::format("  {:>+10.4f}  ", d.value);
      out += d.standard_error ? fmt::format("{:+.4f} to {:+.4f}", d.low(), d.high()) : "-";
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::string report_table(const Report& report) {
  std::vector<const std::vector<Entry>*> corpora, tasks;
  for (const Evaluated& e : report.checkpoints) corpora.push_back(&e.corpora), tasks.push_back(&e.tasks);
  Evaluated pairs;
  if (report.checkpoints.size() == 2) pairs = differences(report.checkpoints[0], report.checkpoints[1]);
  std::string out;
  for (const Evaluated& e : report.checkpoints)
    out += fmt::format("{} (step {}{})\n", e.path, e.step, e.mp.empty() ? "" : ", computed in " + e.mp);
  for (const std::string& part :
       {section("corpora", entry_lines(corpora), report),
        section("averages of corpora", average_lines(corpora, pairs.corpora), report),
        section("tasks", entry_lines(tasks), report),
        section("averages of tasks", average_lines(tasks, pairs.tasks), report)})
    if (!part.empty()) out += "\n" + part;
  return out;
}

}  // namespace ostro::eval
