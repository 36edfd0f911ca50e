// data_difference: which source files of a run's data another data set lacks or has besides, as words for an
// error.
//
// The chain holds one hash of the data and no list of files. The list is in the run's report.json, which no
// hash covers: what it says is a hint where to look, and no proof.
#pragma once

#include <string>

#include "ostro/batches/loader/data_set.h"
#include "ostro/io/files/file_system.h"

namespace ostro::train {

// In a run's directory: the facts for its page (ostro/page/facts/facts.h), the list of source files among
// them.
inline constexpr const char* kReportFile = "report.json";

// Begins with "; ". Empty if the run has no such list (or one that cannot be read), or if the files are
// equal.
std::string data_difference(io::FileSystem& fs, const std::string& run_directory,
                            const batches::DataSet& stores);

}  // namespace ostro::train
