// add_load_metrics, collapsed_layer: report how evenly a mixture's experts are used.
#pragma once

#include <string>
#include <vector>

#include "ostro/run/report/tracker.h"
#include "ostro/runtime/buffer.h"

namespace ostro::run {

// `loads`: for each block of layers the shares of the rows that the experts get, f32 [layers, experts]. Adds
// moe/max_load, moe/min_load (1: even), moe/entropy (0 to 1), moe/load/E of each expert and
// moe/dropped_tokens. Adds nothing when there are no loads.
void add_load_metrics(const std::vector<runtime::Buffer>& loads, Metrics& metrics);

// Describes the first layer whose load has an entropy below `least`, on a scale of 0 to 1; empty if there is
// none.
std::string collapsed_layer(const std::vector<runtime::Buffer>& loads, double least);

}  // namespace ostro::run
