// evaluation_files, evaluation_hashes: the files of evaluation texts that a step of kind filter looks for,
// and the SHA-256 of each by its path from the plan's folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ostro/data/sources/source_files.h"
#include "ostro/experiment/plan/plan.h"
#include "ostro/io/files/file_system.h"

namespace ostro::lab {

Result<std::vector<data::SourceFile>> evaluation_files(io::FileSystem& fs, const Plan& plan,
                                                       const Step& step);
Result<std::map<std::string, std::string>> evaluation_hashes(io::FileSystem& fs, const Plan& plan,
                                                             const Step& step);

}  // namespace ostro::lab
