// drive: goes through the steps of an open lab. Private to the sub-room.
#pragma once

#include "ostro/lab/drive/decide.h"
#include "ostro/lab/drive/driver.h"

namespace ostro::lab {

// Does the steps (or, in a lab that does not work, looks at them) as run_plan and look_at say.
Result<LabState> drive(OpenLab lab, const RunRequest& request);

}  // namespace ostro::lab
