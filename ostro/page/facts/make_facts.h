// What report.json says, out of a run's data and its newest checkpoint.
#pragma once

#include <functional>
#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/page/facts/facts.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::page {

// Counts of the run's data.
Result<std::vector<ComponentFacts>> data_facts(io::FileSystem& fs, const std::string& run_directory,
                                               const train::TrainConfig& config);

// Fills in the samples: beginnings of held-out documents, the first that are long enough, component by
// component in turn, and how the newest checkpoint goes on with each. A function of the run alone. Without
// held-out text the model begins documents of its own. Nothing happens when `facts` has the samples of that
// checkpoint. Errors: no checkpoint, no data; a model that cannot generate.
Status add_samples(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                   const train::TrainConfig& config, const std::function<bool()>& stop, Facts& facts);

}  // namespace ostro::page
