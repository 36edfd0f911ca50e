// check_lab: whether what a lab has written still holds, without doing a step: journal, kept plans, registry,
// pins of sources, outputs.
#pragma once

#include "ostro/lab/drive/lab_state.h"

namespace ostro::lab {

struct LabCheck {
  std::vector<std::string> faults;  // what is wrong: the thing, both values, the place
  std::vector<std::string> holds;   // what was compared and holds
  std::vector<std::string> open;    // what could not be compared, and why
};

// Reads only. Outputs are those of all steps that the journal has, also of earlier plans. With `every_byte`
// each of their files and of the sources' is read; else those whose size or time has changed. A damaged
// journal is a fault, and then nothing that follows from it is compared. Errors: those of reading.
Result<LabCheck> check_lab(const Context& context, const Plan& plan, bool every_byte);

}  // namespace ostro::lab
