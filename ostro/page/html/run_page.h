// run_page, write_report: the files for people that a run's directory gets at its end: report.json and the
// page.
#pragma once

#include <functional>
#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::page {

// The HTML of the page of a run directory. Errors: no run there, or a wrong chain.
Result<std::string> run_page(io::FileSystem& fs, const std::string& run_directory,
                             const models::ModelChoices& models);

// Writes report.json and report.html; returns the path of the page. `sampler` is a fast engine, with which
// samples of the newest checkpoint are added until `stop` returns true; null: no samples. Facts that cannot
// be found are left out with a warning. Errors: of writing alone.
Result<std::string> write_report(io::FileSystem& fs, runtime::Engine* sampler,
                                 const std::string& run_directory, const train::TrainConfig& config,
                                 const std::function<bool()>& stop);

}  // namespace ostro::page
