// remove_unneeded: removes outputs of a lab that the plan as it is now has no step for: those of earlier
// plans, and what was begun and never done. Each can be made again from its plan; the journal keeps its hash.
#pragma once

#include "ostro/lab/drive/lab_state.h"

namespace ostro::lab {

struct UnneededOutput {
  std::string folder;   // in the lab's folder
  std::string step;     // whose output it was; empty: it was begun, and never done
  std::string content;  // its hash in the journal
  int64_t bytes = 0;
};

// Returns what it removes, or with `dry_run` would remove. An output whose fingerprint gave two contents, and
// a run that was done under a registration, stay: they are evidence. An output is whole or counts as gone,
// wherever this is killed. Errors: a step of the plan is not done, so that what the steps behind it need is
// not known; another process works on the lab; the journal is damaged; those of removing.
Result<std::vector<UnneededOutput>> remove_unneeded(const Context& context, const Plan& plan, bool dry_run);

}  // namespace ostro::lab
