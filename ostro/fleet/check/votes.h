// Vote, judge: which of several workers that computed the same thing computed it wrongly. Disagreement: what
// a step's checks found. Pure functions; no errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/numerics/fingerprint.h"

namespace ostro::fleet {

// One result of one worker. A worker may have several.
struct Vote {
  int64_t rank = 0;
  numerics::Fingerprint print;
};

struct Judgement {
  bool agree = true;            // all votes are equal
  bool decided = true;          // the most frequent result is there twice, and no other one is there as often
  std::vector<int64_t> differ;  // when decided: the workers with another result, ascending
};
Judgement judge(const std::vector<Vote>& votes);

// "3f2a... by worker 0, 91bc... by worker 2": the votes for a message.
std::string votes_text(const std::vector<Vote>& votes);

// What the checks of a step found wrong; the step is not done then, or its state is not to be used.
struct Disagreement {
  int64_t step = 0;
  std::vector<int64_t> differ = {};  // ranks that a majority named; empty: none decides
  // The copies of the state after the step differ, and none decides which one is right.
  bool state_lost = false;
  std::string text = {};
  bool names(int64_t rank) const;
};

}  // namespace ostro::fleet
