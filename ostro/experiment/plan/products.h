// Products: what a plan says of report and pages. Private to the sub-room.
#pragma once

#include "ostro/experiment/plan/plan.h"

namespace ostro::lab {

// Reads the keys `report` (a file, or a map of the file and the folder in which `ostro lab run` writes the
// report) and `site` of a plan. Errors: as read_plan.
Status read_products(const config::Node& root, Plan& plan);

}  // namespace ostro::lab
