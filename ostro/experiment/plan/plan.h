// Plan: an experiment as its YAML file describes it, with sweeps expanded: the steps in an order in which
// they can be done, queries, and what the report shows. A value; docs/guide/lab.md describes the file.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ostro/config/node.h"
#include "ostro/config/yaml.h"
#include "ostro/experiment/plan/hypothesis.h"
#include "ostro/experiment/plan/query.h"
#include "ostro/experiment/plan/step_kinds.h"
#include "ostro/io/files/file_system.h"

namespace ostro::lab {

// One step, for one choice of all sweep variables that it depends on.
struct Step {
  std::string name;    // "base[rate=0.001]"; without a sweep as declared
  std::string family;  // the declared name: "base"
  std::string where;   // "FILE:LINE" of the declaration
  const StepKind* kind = nullptr;
  std::map<std::string, std::string> labels;  // the choice: variable -> label
  config::Node parameters;  // all parameters but steps, with defaults, in the order of the kind
  std::map<std::string, std::string> inputs;  // parameter -> name of the step
};

// The step whose forecast a training checks; null: none.
const std::string* checked_forecast(const Step& step);

// What a machine costs, as the plan declares it. It is shown, and is in no fingerprint.
struct Price {
  double machine_hour = 0;
  std::string currency;  // a word; may be empty

  // "1.25 EUR" for some seconds.
  std::string text(double seconds) const;
};

// Folders that `ostro lab run` fills when all steps are done, as the plan has them; "": one beside the
// outputs. They are in no fingerprint, and not in the canonical plan.
struct Products {
  std::optional<std::string> report, site;
};

struct Plan {
  std::string file, folder;  // the plan's path, and its folder: relative paths in the plan begin there
  std::string name, question;
  std::vector<Step> steps;  // inputs first
  std::vector<Hypothesis> hypotheses;
  std::vector<Query> queries;  // each gives one value
  std::vector<Query> figures;  // each gives rows of points (FigureForm)
  std::vector<Query> tables;   // each gives a table
  std::string report;          // path of the report's text; empty: none
  Products makes;
  std::set<std::string> show_texts;  // licences under which pages may show texts of sources
  std::optional<Price> price;
  // The same steps on the first rows of each source, with short trainings, in a folder of its own.
  bool sanity = false;

  // Null when there is no such step.
  const Step* find(const std::string& name) const;
  // The steps that a step needs, each behind one that needs it, without those in `seen`, which gets their
  // names.
  std::vector<const Step*> needed_by(const Step& step, std::set<std::string>& seen) const;
  // A path as seen from the plan's folder, if it lies below it; else the path.
  std::string relative(const std::string& path) const;
  // The folder of journal and outputs beside the plan: NAME.lab, of a sanity run NAME.sanity.lab.
  std::string directory() const;
  // Where report and pages are written when nothing else is asked: as the plan says, else, and of a sanity
  // run, "report" and "site" in directory().
  std::string report_folder() const;
  std::string site_folder() const;
};

// Reads and expands a plan. Errors name file and line: an unknown key, kind or step, with the nearest name; a
// missing parameter or one of a wrong type; a key that is there twice, with both places. `read`: as of
// config::read_yaml_file.
Result<Plan> read_plan(io::FileSystem& fs, const std::string& path, const config::ReadText& read = {});

// The expanded steps as canonical JSON: sorted keys, no comments, no paths of this machine.
std::string canonical_plan(const Plan& plan);

}  // namespace ostro::lab
