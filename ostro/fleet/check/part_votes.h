// PartVotes, judge_parts: which workers are at fault where copies of a part of an array differ. Pure
// functions; no errors.
#pragma once

#include <string>
#include <vector>

#include "ostro/fleet/check/votes.h"

namespace ostro::fleet {

// What worker `rank` computes with, and the worker that gave it the part; `from` == rank: it has it from
// itself.
struct PartRead {
  int64_t rank = 0;
  numerics::Fingerprint print;
  int64_t from = 0;
};

// Everything that workers have of a part of an array after some step.
struct PartVotes {
  std::string name;            // of the array
  std::vector<Vote> kept;      // by those that keep it as a part of the state, its owners and copies
  std::vector<PartRead> read;  // by those that compute with it; may be empty
};

// What the votes on all `parts` of a step say; without text when all agree.
//
// Of what is kept, a majority is right. The votes of workers that a majority names on one part do not count
// on the others: their memory is at fault. Where then none decides, the state is lost, and no worker is
// named. Of what is read, a worker is named that has another value than the one that gave it; if several have
// the same other value from one worker, that one is. A worker that may have been given what it has is not
// named.
Disagreement judge_parts(int64_t step, const std::vector<PartVotes>& parts);

}  // namespace ostro::fleet
