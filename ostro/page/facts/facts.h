// report.json: what the page of a run says besides its records: how much data there was, and what the model
// says at the end. Written where a run ends, for inspect, which reads no arrays and no data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"

namespace ostro::page {

inline constexpr const char* kFactsFile = "report.json";
inline constexpr const char* kPageFile = "report.html";

struct SplitFacts {
  int64_t documents = 0, tokens = 0, bytes = 0;
};
struct ComponentFacts {
  std::string name;  // empty: the only one
  SplitFacts train, held_out;
};

// A held-out text, cut, and how the model goes on behind its beginning.
struct Sample {
  std::string component, file;
  int64_t document = 0;     // in the file, from 1
  std::string prompt;       // the beginning of the document; empty: the model began a new one
  std::string text, model;  // how the document goes on; how the model does
};

struct Facts {
  std::vector<ComponentFacts> data;
  std::string checkpoint;  // the state's name that made the samples; empty: none were made
  int64_t step = 0;        // of it
  double temperature = 0;
  int64_t seed = 0;
  std::vector<Sample> samples;
};

std::string facts_json(const Facts& facts);
// kNotFound, or kCorrupt with the field's name.
Result<Facts> read_facts(io::FileSystem& fs, const std::string& path);

}  // namespace ostro::page
