// Evaluated: the results of one model: by corpus and task, and by node of the tree of their tags. Values and
// pure functions; there are no errors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ostro/eval/report/samples.h"

namespace ostro::eval {

// One figure of an entry, for each of its documents.
struct Measure {
  std::string name;  // "bits_per_byte", "acc_norm"
  Samples samples;
};

// One corpus or task.
struct Entry {
  std::string name;                              // "paloma/c4"
  std::string type;                              // "corpus", "multiple_choice", ...
  std::vector<std::string> tags;                 // further nodes that the entry belongs to
  std::string documents_hash;                    // SHA-256 of the texts, or of prompts and answers
  int64_t documents = 0, tokens = 0, bytes = 0;  // tokens and bytes of what was scored or generated
  std::vector<Measure> measures;

  // The measure of this name; null when there is none.
  const Measure* find(const std::string& measure) const;
};

// The nodes of the tree that have at least two entries, by path, each with the positions of its entries in
// `entries`. Every entry belongs to the node "". An entry named "a/b/c" belongs to "a" and "a/b", and one
// with the tag "x/y" to "x" and "x/y".
std::map<std::string, std::vector<size_t>> tag_nodes(const std::vector<Entry>& entries);

struct Evaluated {
  std::string path, state;  // the path of the checkpoint; the name of its state
  int64_t step = 0;
  std::vector<Entry> corpora, tasks;
  std::string mp = {};  // trained::LoadedModel::other_mp
};

// The samples of each measure of the entries at positions `members`, in the order in which the measures first
// appear. They point into `entries`.
std::vector<std::pair<std::string, std::vector<const Samples*>>> measures_at(
    const std::vector<Entry>& entries, const std::vector<size_t>& members);

// The differences `to` - `from`, document by document, of every measure that both have for the same
// documents. Entries and measures that cannot be compared are absent.
Evaluated differences(const Evaluated& from, const Evaluated& to);

}  // namespace ostro::eval
