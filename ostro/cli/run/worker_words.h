// What a launcher was told, without what is for itself.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace ostro::cli {

// The words of a launcher's command line that its workers get, too: all but the verb, which comes first, and
// the options `own` with their values.
std::vector<std::string> worker_words(const std::vector<std::string>& typed,
                                      const std::set<std::string>& own);

}  // namespace ostro::cli
