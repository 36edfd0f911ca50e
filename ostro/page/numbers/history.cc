#include "ostro/page/numbers/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "ostro/io/files/path.h"
#include "ostro/io/read/line_reader.h"

namespace ostro::page {
namespace {

using Json = nlohmann::json;

constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr size_t kLongestName = 200;  // bytes: what is longer comes from a damaged file

Bins& bins_of(History& history, std::string_view name, size_t limit) {
  // Of components there may be many.
  const bool of_component = name.starts_with("eval/") && name.find('/', 5) != std::string_view::npos;
  return history.metrics.try_emplace(std::string(name), of_component ? std::max<size_t>(limit / 4, 2) : limit)
      .first->second;
}

// Adds the numbers of a line; null is a value that is not finite. Returns false if it is not a line of
// metrics.
bool add_line(std::string_view line, size_t limit, History& history) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("step") || !object["step"].is_number_integer()) return false;
  const auto step = object["step"].get<int64_t>();
  // Behind the chain: of a process that was killed before the chain had it. Before it: no step of this run.
  if (step > history.last_step || step < history.first_step - 1) return true;
  for (const auto& [name, value] : object.items()) {
    if (name == "step" || name == "time" || name == kTrainLoss || name.size() > kLongestName ||
        !(value.is_number() || value.is_null()))
      continue;
    if (value == 0 && (name == "throughput/tokens_per_second" || name == "throughput/mfu"))
      continue;  // not known yet
    bins_of(history, name, limit)
        .add(step, value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
  }
  return true;
}

}  // namespace

std::vector<Reached> sums_by_step(const Bins& each, int64_t first_step, int64_t last_step) {
  if (each.empty() || each.values() != last_step - first_step + 1) return {};
  std::vector<Reached> out = {{first_step - 1, 0}};
  for (const Bin& bin : each.all()) out.push_back({bin.last, out.back().amount + bin.sum});
  return out;
}

History chain_history(const chain::Chain& chain, size_t bins) {
  History history;
  history.step_tokens = Bins(bins);
  history.first_step = chain::entry_step(chain.links.front().entry) + 1;
  history.last_step = chain.last_step();
  for (const chain::ChainLink& link : chain.links) {
    const auto* step = std::get_if<chain::StepEntry>(&link.entry);
    if (step == nullptr) continue;
    bins_of(history, kTrainLoss, bins).add(step->step, step->loss);
    history.tokens += static_cast<double>(step->tokens);
    history.step_tokens.add(step->step, static_cast<double>(step->tokens));
  }
  return history;
}

Result<History> read_history(io::FileSystem& fs, const std::string& run_directory, const chain::Chain& chain,
                             size_t bins) {
  History history = chain_history(chain, bins);
  const std::string path = io::join_path(run_directory, kMetricsFile);
  ASSIGN_OR_RETURN(history.has_metrics, fs.exists(path));
  if (!history.has_metrics) return history;
  ASSIGN_OR_RETURN(io::LineReader reader, io::LineReader::open(fs, path));
  for (std::string_view line;;) {
    ASSIGN_OR_RETURN(const bool more, reader.next(line));
    if (!more) return history;
    if (!add_line(line, bins, history)) ++history.unreadable;
  }
}

History history_of(io::FileSystem& fs, const std::string& run_directory, size_t bins) {
  const auto chain = chain::read_chain(fs, io::join_path(run_directory, chain::kChainFile));
  if (!chain.ok()) return {};
  auto history = read_history(fs, run_directory, *chain, bins);
  return history.ok() ? std::move(*history) : chain_history(*chain, bins);
}

Result<std::vector<std::string>> find_metrics(const History& history, const std::string& wanted) {
  std::vector<std::string> found, names;
  for (const auto& [name, bins] : history.metrics) {
    names.push_back(name);
    if (name == wanted || name.ends_with("/" + wanted)) found.push_back(name);
  }
  // Metrics of training come first.
  std::stable_partition(found.begin(), found.end(),
                        [](const std::string& name) { return name.starts_with("train/"); });
  if (history.metrics.contains(wanted)) return std::vector<std::string>{wanted};
  if (found.empty())
    return invalid_argument(
        fmt::format("--metric {}: the run has no such numbers; it has {}", wanted,
                    names.empty() ? "none yet" : fmt::format("{}", fmt::join(names, ", "))));
  return found;
}

}  // namespace ostro::page
