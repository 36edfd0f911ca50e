// run_page, comparison_page, write_report: pages of runs, and the files for people in a run's directory:
// report.json and report.html.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/page/html/page.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::page {

// The HTML of the page of a run directory. Errors: no run there, or a wrong chain.
Result<std::string> run_page(io::FileSystem& fs, const std::string& run_directory,
                             const models::ModelChoices& models, PageKind kind = PageKind::kFile);

// The HTML of the page that shows several runs over each other; errors as run_page.
Result<std::string> comparison_page(io::FileSystem& fs, std::span<const std::string> run_directories,
                                    const models::ModelChoices& models);

// Writes report.html of a run that goes on. It first collects the facts that report.json lacks, but makes no
// samples. Errors: those of reading the chain and of writing.
Status refresh_report(io::FileSystem& fs, const std::string& run_directory, const train::TrainConfig& config);

// Writes report.json and report.html; returns the path of the page. `sampler` is a fast engine, with which
// samples of the newest checkpoint are added until `stop` returns true; null: no samples. Facts that cannot
// be collected are left out with a warning. Errors: those of writing.
Result<std::string> write_report(io::FileSystem& fs, runtime::Engine* sampler,
                                 const std::string& run_directory, const train::TrainConfig& config,
                                 const std::function<bool()>& stop);

}  // namespace ostro::page
