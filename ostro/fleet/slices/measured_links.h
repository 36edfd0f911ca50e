// measure_links: how fast the workers of an epoch reach each other, and which of them are so in one slice
// (trainer.mesh.slices: auto).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/runtime/collectives.h"

namespace ostro::fleet {

inline constexpr double kMostSecondsOfLinks = 60;  // then no further links are measured

// What is known before: the slices of the epoch's workers by rank, and rates of an earlier measurement.
struct KnownSlices {
  std::vector<std::string> names;
  std::vector<bool> guessed;       // the worker has no slice yet, and its name is a guess
  int64_t limit = 0, fastest = 0;  // bytes a second (SliceSearch); 0: none
};

// What the links say. Of worker 0 all of it is set, of the others `differs` alone.
struct MeasuredSlices {
  bool differs = false;            // the workers are in other slices than this epoch has
  bool anew = false;               // names that were measured before do not count any more
  std::vector<std::string> names;  // of the slice of each worker, by rank
  int64_t limit = 0, fastest = 0;  // for later workers
  std::string text;                // for people: who is in which slice, how fast links are; "": none measured
};

// All workers of the group call it. `machine`: a text that workers whose links leave no machine have in
// common; one worker of each machine measures for all of it. `hosts`: by rank. Worker 0 tells which links are
// measured (SliceSearch), until kMostSecondsOfLinks have passed; a worker is in one measurement at a time,
// with one other, both ways, with 64 KiB, then with 1 MiB and 8 MiB as long as that takes less than 20 ms.
// `prefix`: begins new names. `seconds` is a clock. Workers that do not measure wait in an exchange for those
// that do. Errors: those of the group.
Result<MeasuredSlices> measure_links(runtime::Collectives& group, const std::string& machine,
                                     const std::vector<std::string>& hosts, const KnownSlices& known,
                                     const std::string& prefix, const std::function<double()>& seconds);

}  // namespace ostro::fleet
