// program_version, version_text: which Ostro this is.
#pragma once

#include <string>

namespace ostro::cli {

// As "0.1.0".
std::string program_version();

// What `ostro --version` prints: lines with the version, the commit of the sources, the version of the
// numerics, and whether .parquet can be read, which a build may leave out.
std::string version_text();

}  // namespace ostro::cli
