// data_difference: names the source files in which a run's data differ from another data set, as words for an
// error.
//
// The chain holds one hash of the data and no list of files. The list is in the run's report.json, which no
// hash covers, so the words are a hint where to look, and no proof.
#pragma once

#include <string>

#include "ostro/batches/loader/data_set.h"
#include "ostro/io/files/file_system.h"

namespace ostro::train {

// The file in a run's directory with the facts for its page (ostro/page/facts/facts.h), which include the
// list of source files.
inline constexpr const char* kReportFile = "report.json";

// Returns the words, which begin with "; ". Empty if the run has no list of files that can be read, or if the
// files are equal.
std::string data_difference(io::FileSystem& fs, const std::string& run_directory,
                            const batches::DataSet& stores);

}  // namespace ostro::train
