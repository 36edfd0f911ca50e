// Track: what the entries of a board are compared by: the same data, tokenizer and evaluation, and a budget
// of operations (docs/reference/formats/board.md). A value, read from YAML.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/config/options.h"
#include "ostro/config/yaml.h"

namespace ostro::board {

// The most bytes that the programs of an entry may hold (held_bytes).
inline constexpr int64_t kMostConstantBytes = int64_t{64} << 10;

struct EvaluationOptions {
  std::vector<std::string> files;
  std::string sha256;
  void visit_options(config::OptionTable& t);
};

struct Track {
  std::string name;
  std::vector<std::string> data;  // roots of the components' rows, hexadecimal
  std::string tokenizer;          // its hash, as in the genesis of a run
  EvaluationOptions evaluation;
  double flops = 0;                   // of a training
  std::optional<double> score_flops;  // of scoring the evaluation once; nothing: as `flops`
  std::optional<int64_t> steps;       // how many are drawn and replayed; nothing: all
  std::string folder;                 // of the file; not a part of the track

  void visit_options(config::OptionTable& t);
  Status resolve();
  double score_budget() const { return score_flops.value_or(flops); }
};

// Reads a track. Errors name file, line and key. `read`: as of config::read_yaml_file.
Result<Track> read_track(const std::string& path, const config::ReadText& read = {});
// The canonical JSON of all that decides: everything but the names of the evaluation's files.
std::string track_text(const Track& track);
// The text of a file that read_track reads as this track, with these files.
std::string track_yaml(const Track& track);

}  // namespace ostro::board
