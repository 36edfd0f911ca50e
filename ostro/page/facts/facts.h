// Facts: the content of report.json: the facts on a run's page that are not in its records, which are the
// amount of data and samples of the model's text. It is written when a run ends, for `ostro inspect`, which
// reads no arrays and no data. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/train/step/data_difference.h"

namespace ostro::page {

inline constexpr const char* kFactsFile = train::kReportFile;
inline constexpr const char* kPageFile = "report.html";

struct SplitFacts {
  int64_t documents = 0, tokens = 0, bytes = 0;
};
// The cost of the held-out text when each token is guessed with its frequency in the training text.
struct Unigram {
  double nats_per_token = 0, bits_per_byte = 0;
};
// A source file of the data. `ostro verify` names those that another data set lacks
// (train/step/data_difference.h).
struct FileFacts {
  std::string file, sha256;
};
struct ComponentFacts {
  std::string name;  // empty: the only one
  SplitFacts train, held_out;
  std::optional<Unigram> unigram = {};  // nothing: no held-out text, or too much training text to count
  std::vector<FileFacts> files = {};    // none: a Levanter cache, or too many to list
};

// A held-out text, cut, and the model's continuation of its beginning.
struct Sample {
  std::string component, file;
  int64_t document = 0;     // in the file, from 1
  std::string prompt;       // the beginning of the document; empty: the model began a new one
  std::string text, model;  // the document's continuation of the prompt, and the model's
};

struct Facts {
  std::vector<ComponentFacts> data;
  std::string checkpoint;  // the name of the state that made the samples; empty: none were made
  int64_t step = 0;        // the step of that state
  double temperature = 0;
  int64_t seed = 0;
  std::vector<Sample> samples;
};

// The text of report.json.
std::string facts_json(const Facts& facts);
// Reads a report.json. Errors: kNotFound; kCorrupt, with the name of the field.
Result<Facts> read_facts(io::FileSystem& fs, const std::string& path);

}  // namespace ostro::page
