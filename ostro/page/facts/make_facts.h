// data_facts, add_samples: make the facts of report.json from a run's data and its newest checkpoint.
#pragma once

#include <functional>
#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/page/facts/facts.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::page {

// Counts the run's data, by component. Errors: those of opening the data.
Result<std::vector<ComponentFacts>> data_facts(io::FileSystem& fs, const std::string& run_directory,
                                               const train::TrainConfig& config);

// Fills in the samples: the beginnings of the first held-out documents that are long enough, from the
// components in turn, each with the continuation that the newest checkpoint gives. Depends on the run alone.
// Without held-out text the model begins documents of its own. Does nothing if `facts` already has the
// samples of that checkpoint. `stop` returns true to end early. Errors: no checkpoint, no data; a model that
// cannot generate.
Status add_samples(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                   const train::TrainConfig& config, const std::function<bool()>& stop, Facts& facts);

}  // namespace ostro::page
