// frozen_text: what a registration freezes, as one text: the expanded steps, the hypotheses with metric and
// rules, the configurations and files that the steps read, and the contents of the sources. Its SHA-256 is
// the registration. Seeds that follow from the registration stand in it by their number.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ostro/experiment/plan/plan.h"
#include "ostro/experiment/plan/seeds.h"

namespace ostro::lab {

// `sources` are the contents of the plan's sources, by step. Canonical JSON. Errors: used_steps(); a
// configuration or file that cannot be read.
Result<std::string> frozen_text(io::FileSystem& fs, const Plan& plan,
                                const std::map<std::string, std::string>& sources);

// The plan's queries, which a registration names beside the frozen text: no seed follows from them.
std::map<std::string, std::string> frozen_queries(const Plan& plan);

// Whether a text that was kept is a frozen text of this version; the functions below take no other.
bool is_frozen_text(const std::string& text);

// What differs between two frozen texts, a line each, which begins with what it is: "metric helps", "rule
// helps", "prediction helps", "hypothesis helps", "seeds base", "step score", "config base.yaml", "file f",
// "source texts". With `sources` false those are left out.
std::vector<std::string> frozen_changes(const std::string& before, const std::string& after,
                                        bool sources = true);

// Whether they differ in something that all hypotheses stand on: a step, seeds, a configuration, a file or a
// source.
bool is_other_experiment(const std::string& before, const std::string& after);

// A frozen text, read.
struct FrozenHypothesis {
  std::string definition;  // canonical JSON
  std::vector<std::string> steps;
};
std::map<std::string, FrozenHypothesis> frozen_hypotheses(const std::string& text);
std::map<std::string, std::string> frozen_sources(const std::string& text);

// A step of a frozen text, as far as it must wait for the registration.
struct FrozenStep {
  std::map<std::string, int64_t> seeds;  // the numbers of the seeds in `set` of a training, by path
  std::map<size_t, int64_t> words;       // those among the words of a program, by place, from 0
  bool used = false;                     // a hypothesis uses it
  std::string forecast;                  // the step whose forecast it checks; else empty
  bool waits() const { return used || !seeds.empty() || !words.empty() || !forecast.empty(); }
};
std::map<std::string, FrozenStep> frozen_steps(const std::string& text);

// Why the recipe (canonical JSON) of a step that was done does not have the seeds that follow from the
// registration; empty if it has them.
std::string wrong_seed(const FrozenStep& step, const std::string& recipe, const Seeds& seeds);

}  // namespace ostro::lab
