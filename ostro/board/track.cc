#include "ostro/board/track.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ostro/chain/canonical.h"
#include "ostro/config/config.h"
#include "ostro/io/files/path.h"

namespace ostro::board {
namespace {

using config::Effect;

constexpr size_t kHashDigits = 64;

Status check_hash(const std::string& key, const std::string& value) {
  if (chain::is_lower_hex(value, kHashDigits)) return {};
  return config::option_error(
      key,
      fmt::format("\"{}\" is no SHA-256 (64 digits 0 to 9, a to f); `ostro lab board track RUN` prints a "
                  "track of a run's data",
                  value));
}

Status check_budget(const std::string& key, double flops) {
  if (std::isfinite(flops) && flops > 0) return {};
  return config::option_error(key, "must be a number above 0");
}

}  // namespace

void EvaluationOptions::visit_options(config::OptionTable& t) {
  t.add(&files, "files", Effect::kOutput, "", "files of text, a document each, beside the track's file");
  t.add(&sha256, "sha256", Effect::kBits, "", "of their SHA-256, a line each, in this order");
}

void Track::visit_options(config::OptionTable& t) {
  t.add(&name, "track", Effect::kBits, "", "its name");
  t.add(&data, "data", Effect::kBits, "", "roots of the components' rows, as in data_roots of a genesis");
  t.add(&tokenizer, "tokenizer", Effect::kBits, "", "hash of the tokenizer, as in a genesis");
  t.section(&evaluation, "evaluation", "the text that entries are scored on");
  t.add(&flops, "flops", Effect::kBits, "FLOPs", "of a training, at most");
  t.add(&score_flops, "score_flops", Effect::kBits, "FLOPs", "of scoring the evaluation once, at most");
  t.add(&steps, "steps", Effect::kBits, "", "how many steps are drawn and replayed; null: all");
}

Status Track::resolve() {
  config::Mistakes mistakes;
  if (name.empty()) mistakes.add(config::option_error("track", "needs a name"));
  if (data.empty()) mistakes.add(config::option_error("data", "needs the root of at least one component"));
  for (const std::string& root : data) mistakes.add(check_hash("data", root));
  std::sort(data.begin(), data.end());
  if (std::adjacent_find(data.begin(), data.end()) != data.end())
    mistakes.add(config::option_error("data", "has a root twice"));
  mistakes.add(check_hash("tokenizer", tokenizer));
  if (evaluation.files.empty()) mistakes.add(config::option_error("evaluation.files", "needs a file"));
  mistakes.add(check_hash("evaluation.sha256", evaluation.sha256));
  mistakes.add(check_budget("flops", flops));
  mistakes.add(check_budget("score_flops", score_budget()));
  if (steps && *steps < 1) mistakes.add(config::option_error("steps", "must be 1 or more, or null for all"));
  return mistakes.status();
}

Result<Track> read_track(const std::string& path, const config::ReadText& read) {
  ASSIGN_OR_RETURN(const config::Node tree, config::read_yaml_file(path, read));
  Track out;
  RETURN_IF_ERROR(config::read_and_resolve(tree, &out));
  out.folder = io::parent_path(path);
  return out;
}

std::string track_text(const Track& track) {
  auto text = chain::canonical_object(config::canonical_config(track));
  OSTRO_CHECK(text.ok(), "a track has no canonical text: {}", text.error().message());
  return std::move(text).value();
}

std::string track_yaml(const Track& track) { return config::resolved_yaml(track); }

}  // namespace ostro::board
