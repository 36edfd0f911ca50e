#include <nlohmann/json.hpp>

#include "ostro/eval/report/report.h"
#include "ostro/numerics/functions.h"

namespace ostro::eval {
namespace {

using Json = nlohmann::ordered_json;

Json estimate_json(const Estimate& e, bool interval) {
  Json out = {{"value", e.value}, {"standard_error", e.standard_error ? Json(*e.standard_error) : Json()}};
  if (interval && e.standard_error) out["low"] = e.low(), out["high"] = e.high();
  return out;
}

Json entries_json(const std::vector<Entry>& entries, bool is_difference) {
  Json out = Json::object();
  for (const Entry& entry : entries) {
    Json& one = out[entry.name];
    one = {{"type", entry.type}, {"tags", entry.tags}, {"documents", entry.documents}};
    if (!is_difference) {
      one["documents_sha256"] = entry.documents_hash;
      one["tokens"] = entry.tokens;
      one["bytes"] = entry.bytes;
    }
    for (const Measure& m : entry.measures) {
      const Estimate e = estimate(m.samples);
      one["measures"][m.name] = estimate_json(e, is_difference);
      // A mean of logarithms that people know by its inverse.
      if (m.name == "log_likelihood" && !is_difference)
        one["measures"]["perplexity"] = {{"value", numerics::exp_f64(-e.value)}};
    }
  }
  return out;
}

Json averages_json(const std::vector<Entry>& entries, bool is_difference) {
  Json out = Json::object();
  for (const auto& [path, members] : tag_nodes(entries)) {
    Json& node = out[path];
    node["members"] = Json::array();
    for (const size_t member : members) node["members"].push_back(entries[member].name);
    for (const auto& [name, samples] : measures_at(entries, members))
      node["measures"][name] = {{"of", samples.size()},
                                {"macro", estimate_json(macro_average(samples), is_difference)},
                                {"micro", estimate_json(micro_average(samples), is_difference)}};
  }
  return out;
}

void put(Json& out, const Evaluated& e, bool is_difference) {
  out["corpora"] = entries_json(e.corpora, is_difference);
  out["corpora_averages"] = averages_json(e.corpora, is_difference);
  out["tasks"] = entries_json(e.tasks, is_difference);
  out["tasks_averages"] = averages_json(e.tasks, is_difference);
}

}  // namespace

std::string report_json(const Report& report) {
  Json out = {{"format", "ostro-eval"}, {"version", kReportVersion}};
  out["task_file"] = {{"path", report.task_file}, {"sha256", report.task_file_hash}};
  out["checkpoints"] = Json::array();
  for (const Evaluated& e : report.checkpoints) {
    Json one = {{"path", e.path}, {"state", e.state}, {"step", e.step}};
    if (!e.mp.empty()) one["mp"] = e.mp;
    put(one, e, false);
    out["checkpoints"].push_back(std::move(one));
  }
  out["differences"] = Json::array();
  for (size_t i = 1; i < report.checkpoints.size(); ++i) {
    Json one = {{"from", report.checkpoints[0].path}, {"to", report.checkpoints[i].path}};
    put(one, differences(report.checkpoints[0], report.checkpoints[i]), true);
    out["differences"].push_back(std::move(one));
  }
  return out.dump(2) + "\n";
}

}  // namespace ostro::eval
