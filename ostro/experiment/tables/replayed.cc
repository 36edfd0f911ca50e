#include "ostro/experiment/tables/replayed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace ostro::lab {
namespace {

// The column that names the step whose result a row is; null: the rows are not of results alone.
const char* step_column(const std::string& table) {
  for (const char* of_runs : {"runs", "forks", "config", "chain", "phases", "checkpoints"})
    if (table == of_runs) return "run";
  for (const char* of_steps : {"evaluations", "evaluation_parts", "rungs", "samples", "models", "stores",
                               "left_out", "fits", "fit_runs", "fit_curves", "steps", "inputs"})
    if (table == of_steps) return "name";
  return nullptr;
}

}  // namespace

Result<std::set<std::string>> steps_under(const Database& record, const std::set<std::string>& tables) {
  std::vector<std::string> open;
  for (const std::string& table : tables) {
    const char* column = step_column(table);
    if (column == nullptr) return std::set<std::string>();
    ASSIGN_OR_RETURN(const Rows rows,
                     record.select(fmt::format("SELECT DISTINCT {} FROM {}", column, table)));
    for (const auto& row : rows.rows) open.push_back(value_text(row[0]));
  }
  std::multimap<std::string, std::string> inputs;
  ASSIGN_OR_RETURN(const Rows edges, record.select("SELECT name, input FROM inputs"));
  for (const auto& row : edges.rows) inputs.emplace(value_text(row[0]), value_text(row[1]));
  ASSIGN_OR_RETURN(const Rows pinned, record.select("SELECT name FROM steps WHERE kind = 'source'"));
  std::set<std::string> sources, out;
  for (const auto& row : pinned.rows) sources.insert(value_text(row[0]));
  while (!open.empty()) {
    const std::string step = open.back();
    open.pop_back();
    if (sources.contains(step) || !out.insert(step).second) continue;
    const auto [begin, end] = inputs.equal_range(step);
    for (auto edge = begin; edge != end; ++edge) open.push_back(edge->second);
  }
  return out;
}

Result<Rows> ask_record(const Database& record, const std::string& sql) {
  ASSIGN_OR_RETURN(Rows out, record.select(sql));
  if (out.number_class != NumberClass::kRecorded) return out;
  ASSIGN_OR_RETURN(const std::set<std::string> steps, steps_under(record, out.tables));
  ASSIGN_OR_RETURN(const Rows replayed, record.select("SELECT DISTINCT name FROM replays WHERE whole = 1"));
  std::set<std::string> done_again;
  for (const auto& row : replayed.rows) done_again.insert(value_text(row[0]));
  if (!steps.empty() && std::includes(done_again.begin(), done_again.end(), steps.begin(), steps.end()))
    out.number_class = NumberClass::kReplayed;
  return out;
}

}  // namespace ostro::lab
