// slice_names: the slices of workers, from their sizes as a person types them: "2:2" for two slices of two
// workers. sim_slices: those of workers that are simulated in this process. Neither changes a bit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::cli {

// The name of each worker's slice: "2:1" gives "0", "0", "1". Error: kInvalidArgument for a text that is not
// sizes from 1 on with ':' between them, or whose sum is not `workers`; `what` begins it.
Result<std::vector<std::string>> slice_names(const std::string& what, std::string_view text, int64_t workers);

// The slices that OSTRO_SIM_SLICES gives the `workers` of OSTRO_SIM_WORKERS; nothing if it is unset or empty.
Result<std::vector<std::string>> sim_slices(int64_t workers);

}  // namespace ostro::cli
