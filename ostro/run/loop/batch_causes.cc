#include "ostro/run/loop/batch_causes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "ostro/chain/canonical.h"

namespace ostro::run {
namespace {

using Json = nlohmann::json;

// `all` holds every option: the canonical config leaves some defaults out.
std::string value_text(const Json& all, const std::vector<std::string>& keys) {
  Json::json_pointer at;
  for (const std::string& key : keys) at /= key;
  if (!all.contains(at)) return "absent";
  const Json& value = all[at];
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool is_of_batches(const std::string& path) {
  return path.starts_with("data.") || path == "model.seq_len" || path == "trainer.seed" ||
         path.starts_with("trainer.train_batch_size");
}

}  // namespace

std::string batch_causes(const train::TrainConfig& a, const train::TrainConfig& b) {
  const auto text = [](const train::TrainConfig& config, config::Write which) {
    return config::canonical_json(config::write_value(config, which));
  };
  auto differences =
      chain::find_differences(text(a, config::Write::kCanonical), text(b, config::Write::kCanonical)).value();
  // Not in the canonical config: it decides how many batches there may be, not what they hold.
  if (a.data.stop_strategy != b.data.stop_strategy)
    differences.push_back({{"data", "stop_strategy"}, "", ""});
  const Json x = Json::parse(text(a, config::Write::kAll)), y = Json::parse(text(b, config::Write::kAll));
  std::string out, others;
  for (const chain::ObjectDifference& d : differences) {
    const std::string path = d.path();
    if (is_of_batches(path))
      out += fmt::format("{}: {} in A, {} in B\n", path, value_text(x, d.keys), value_text(y, d.keys));
    else
      others += (others.empty() ? "" : ", ") + path;
  }
  if (!others.empty())
    out += fmt::format("other options that differ, without a part in the batches: {}\n", others);
  return out;
}

}  // namespace ostro::run
