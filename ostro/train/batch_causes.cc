#include "ostro/train/batch_causes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace ostro::train {
namespace {

using Json = nlohmann::json;

Json options_json(const TrainConfig& config, config::Write which) {
  return Json::parse(config::canonical_json(config::write_value(config, which)));
}

struct Place {
  Json::json_pointer pointer;
  std::string path;
};

// Where two trees differ: leaves, or what one of them lacks.
void find_different(const Place& place, const Json& a, const Json& b, std::vector<Place>& out) {
  if (a == b) return;
  if (!a.is_object() || !b.is_object()) {
    out.push_back(place);
    return;
  }
  Json keys = a;
  keys.update(b);
  for (const auto& [key, unused] : keys.items()) {
    const Place inner{place.pointer / key, place.path.empty() ? key : place.path + "." + key};
    if (a.contains(key) && b.contains(key))
      find_different(inner, a[key], b[key], out);
    else
      out.push_back(inner);
  }
}

// `all`: every option, as the canonical ones leave some defaults out.
std::string value_text(const Json& all, const Place& place) {
  if (!all.contains(place.pointer)) return "absent";
  const Json& value = all[place.pointer];
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool is_of_batches(const std::string& path) {
  return path.starts_with("data.") || path == "model.seq_len" || path == "trainer.seed" ||
         path.starts_with("trainer.train_batch_size");
}

}  // namespace

std::string batch_causes(const TrainConfig& a, const TrainConfig& b) {
  std::vector<Place> places;
  find_different({Json::json_pointer(), ""}, options_json(a, config::Write::kCanonical),
                 options_json(b, config::Write::kCanonical), places);
  const Json x = options_json(a, config::Write::kAll), y = options_json(b, config::Write::kAll);
  // No option of the batches, but of how many there may be.
  if (a.data.stop_strategy != b.data.stop_strategy)
    places.push_back({Json::json_pointer("/data/stop_strategy"), "data.stop_strategy"});
  std::string out, others;
  for (const Place& place : places) {
    if (is_of_batches(place.path))
      out += fmt::format("{}: {} in A, {} in B\n", place.path, value_text(x, place), value_text(y, place));
    else
      others += (others.empty() ? "" : ", ") + place.path;
  }
  if (!others.empty())
    out += fmt::format("other options that differ, without a part in the batches: {}\n", others);
  return out;
}

}  // namespace ostro::train
