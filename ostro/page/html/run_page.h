// What a run's directory gets at its end for people: report.json and the page.
#pragma once

#include <functional>
#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::page {

// The page's text, of what a run directory holds. Errors: no run there, or its chain is wrong.
Result<std::string> run_page(io::FileSystem& fs, const std::string& run_directory,
                             const train::ModelChoices& models);

// Writes report.json and report.html; gives the page's path. With an engine that is fast (not null) what the
// newest checkpoint says stands in it, too, unless `stop` says so meanwhile. What cannot be known is left out
// with a warning; an error is one of writing.
Result<std::string> write_report(io::FileSystem& fs, runtime::Engine* sampler,
                                 const std::string& run_directory, const train::TrainConfig& config,
                                 const std::function<bool()>& stop);

}  // namespace ostro::page
