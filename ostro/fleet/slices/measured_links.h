// measure_links: how fast the workers of an epoch reach each other, and which of them are so in one slice
// (trainer.mesh.slices: auto).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/runtime/collectives.h"

namespace ostro::fleet {

// What the links say. Of worker 0 all of it is set, of the others `differs` alone.
struct MeasuredSlices {
  bool differs = false;            // the workers are in other slices than this epoch has
  std::vector<std::string> names;  // of the slice of each worker, by rank
  double limit = 0;                // FoundSlices::limit
  std::string text;                // for people: who is in which slice, and how fast links are
};

// All workers of the group call it. `machine`: a text that workers whose links leave no machine have in
// common; one worker of each machine measures for all of it. `hosts`, `slices`: by rank; workers whose slice
// is "" get one, and nothing is measured between machines whose slices are known, unless `limit` is 0.
// `limit` is that of worker 0; what others say does not count. Two workers of a machine at most are measured
// at a time, both ways, with 64 KiB, then with 1 MiB and 8 MiB as long as that takes less than 20 ms.
// `seconds` is a clock. Errors: those of the group.
Result<MeasuredSlices> measure_links(runtime::Collectives& group, const std::string& machine,
                                     const std::vector<std::string>& hosts,
                                     const std::vector<std::string>& slices, double limit,
                                     const std::function<double()>& seconds);

}  // namespace ostro::fleet
