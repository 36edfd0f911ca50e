// Evaluated: the results of one model: by corpus and task, and by node of the tree of their tags.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ostro/eval/report/samples.h"

namespace ostro::eval {

struct Measure {
  std::string name;  // "bits_per_byte", "acc_norm"
  Samples samples;
};

// One corpus or task.
struct Entry {
  std::string name;                              // "paloma/c4"
  std::string type;                              // "corpus", "multiple_choice", ...
  std::vector<std::string> tags;                 // beside the nodes of the name
  std::string documents_hash;                    // SHA-256 of the texts, or of prompts and answers
  int64_t documents = 0, tokens = 0, bytes = 0;  // tokens and bytes of what was scored or generated
  std::vector<Measure> measures;

  const Measure* find(const std::string& measure) const;
};

// The nodes above each entry: of "a/b/c" they are "a" and "a/b", of a tag "x/y" they are "x" and "x/y", and
// of all "". Only nodes with at least two entries, in the order of their paths; entries by their place.
std::map<std::string, std::vector<size_t>> tag_nodes(const std::vector<Entry>& entries);

struct Evaluated {
  std::string path, state;  // of the checkpoint; the name of its state
  int64_t step = 0;
  std::vector<Entry> corpora, tasks;
};

// The samples of each measure at a node, in the order in which the measures first appear.
std::vector<std::pair<std::string, std::vector<const Samples*>>> measures_at(
    const std::vector<Entry>& entries, const std::vector<size_t>& members);

// `to` - `from` of every measure of the same documents. Entries and measures that cannot be compared are
// absent.
Evaluated differences(const Evaluated& from, const Evaluated& to);

}  // namespace ostro::eval
