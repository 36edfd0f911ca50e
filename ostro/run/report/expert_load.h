// add_load_metrics, collapsed_layer: report how evenly a mixture's experts are used. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "ostro/run/report/tracker.h"
#include "ostro/runtime/buffer.h"

namespace ostro::run {

// Adds moe/max_load, moe/min_load (1: even), moe/entropy (0 to 1), moe/load/E of each expert and
// moe/dropped_tokens to `metrics`; nothing when there are no loads. `loads` has for each block of layers the
// parts of the rows that the experts get, f32 [layers, experts].
void add_load_metrics(const std::vector<runtime::Buffer>& loads, Metrics& metrics);

// Describes the first layer whose load has an entropy below `least`, on a scale of 0 to 1; empty if there is
// none.
std::string collapsed_layer(const std::vector<runtime::Buffer>& loads, double least);

}  // namespace ostro::run
