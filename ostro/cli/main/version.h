// version_text: the text that `ostro --version` prints.
#pragma once

#include <string>

namespace ostro::cli {

// Lines: the version, the commit of the sources, the version of the numerics, and whether .parquet can be
// read, which a build may leave out.
std::string version_text();

}  // namespace ostro::cli
