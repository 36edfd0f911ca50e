// registry_faults: whether a registry holds against its journal and the frozen texts that are kept. It reads
// the lines by itself, so that it can say of a file that is no chain any more what was done to it.
#pragma once

#include <string>
#include <vector>

#include "ostro/experiment/journal/journal.h"

namespace ostro::lab {

// What is wrong, a line each; empty: the registry holds. It finds lines that were removed, reordered, altered
// or put in later; a time or a place in the journal that is earlier than it can be; signatures that are
// wrong, or of another key than the lines before (with `key`, a public key in PEM, than that one); frozen
// texts that were changed; steps that were done with other seeds than follow from their registration. Errors:
// files that cannot be read.
Result<std::vector<std::string>> registry_faults(io::FileSystem& fs, const std::string& lab_directory,
                                                 const Journal& journal, const std::string& key = "");

}  // namespace ostro::lab
