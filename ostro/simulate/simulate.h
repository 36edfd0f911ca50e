// simulate: a step and some hours of a run on a cluster, in virtual time (`ostro simulate`). The same options
// give the same result on every machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/simulate/run_history.h"

namespace ostro::simulate {

// A step's time when one thing is twice as fast, or differs half as much.
struct Limit {
  std::string what;     // "links between slices"
  double seconds = 0;   // of a step, with it twice as fast
  std::string figures;  // what it has to carry
};

struct Simulation {
  SimulateOptions options;
  RunModel model;
  StepPlan plan;
  StepTime step;              // the mean of some steps
  double as_it_is = 0;        // seconds of the step that is compared with those of `limits`
  std::vector<Limit> limits;  // the one that matters most first
  std::optional<RunHistory> run;
  std::vector<std::string> notes;  // what a person should know: idle hosts, axes that split nothing
};

// Errors: of check_options; a mesh that does not fit the hosts; those of the model.
Result<Simulation> simulate(RunModel model, runtime::Engine& engine, const SimulateOptions& options);

// The same for the run of a configuration. `vocab`: as for load_model. `calibrates`: this machine's speeds,
// on the threads of `engine`, take the place of those in `options` (calibrate.h). Errors: also those of
// load_model and of calibrate.
Result<Simulation> simulate_config(io::FileSystem& fs, const train::TrainConfig& config, int64_t vocab,
                                   runtime::Engine& engine, SimulateOptions options, bool calibrates);

// The report for people, and for programs.
std::string report_text(const Simulation& simulation);
std::string report_json(const Simulation& simulation);
// "What limits it: ...": a sentence with figures.
std::string limit_text(const Simulation& simulation);

}  // namespace ostro::simulate
