// What a launcher was told: what is for its workers, and whether it makes sense.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {

// The words of a launcher's command line that its workers get, too: all but the verb, which comes first, and
// the options `own` with their values.
std::vector<std::string> worker_words(const std::vector<std::string>& typed,
                                      const std::set<std::string>& own);

// Whether so many workers can train with this configuration's mesh. Errors: kInvalidArgument, with a number
// that can.
Status check_workers(int64_t min_workers, int64_t max_workers, const train::TrainConfig& config);

}  // namespace ostro::cli
