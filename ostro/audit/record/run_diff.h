// compare_runs: where two runs begin to differ, and why, by what their chains say. Pure functions.
//
// `ostro lab diff` prints it. The site's page of two runs compares chains in a browser, by the words and
// rules of run_diff_rules_json().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/chain/chain.h"

namespace ostro::audit {

struct ComparedRun {
  std::string name;  // for people
  const chain::Chain& chain;
};

// What the two have under one name, for people to read; "absent" where one lacks it.
struct NamedPair {
  std::string name, one, two;
  bool operator==(const NamedPair&) const = default;
};

struct RunDifference {
  int64_t common = 0, first = 0, last = 0;  // steps that both have: how many, and which
  std::optional<int64_t> step;              // the first of them that differs
  std::vector<std::string> fields;          // in what: "batch", "tokens", "loss", "leaves", "state"
  std::vector<NamedPair> values;            // these, of that step
  std::vector<NamedPair> options;           // of the configurations at their beginnings
  std::vector<NamedPair> identity;          // programs, data, tokenizer, numerics, start
  std::vector<std::string> why;             // sentences, for a step that differs
};

RunDifference compare_runs(const ComparedRun& one, const ComparedRun& two);

// The finding in one sentence, or two.
std::string answer_text(const RunDifference& difference);
// All of it, as people read it in a terminal.
std::string run_difference_text(const RunDifference& difference, const ComparedRun& one,
                                const ComparedRun& two);
std::string run_difference_json(const RunDifference& difference, const ComparedRun& one,
                                const ComparedRun& two);

// What is compared, what options count as those of data, and the sentences: a JSON object, for code in
// another language that decides the same.
std::string run_diff_rules_json();

}  // namespace ostro::audit
