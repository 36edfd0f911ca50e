// stopped_at, left_out: what the rungs of a halved sweep mean for the steps of a plan: which trainings ended
// at a rung, and which steps are not done because of that. Both follow from the outputs of rungs and from
// nothing else, so every process comes to the same.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ostro/lab/steps/work.h"

namespace ostro::lab {

// That a training ended at a rung before its last step.
struct Stopped {
  int64_t step = 0;
  std::string why;  // "at the rung base-200-rung after step 200: place 3 of 9 by held-out loss 5.1, 3 kept"
};
// Nothing for a training that goes on to its end, or to the next rung, and for all other steps. The step's
// inputs are in `made`. Errors: of read_rung().
Result<std::optional<Stopped>> stopped_at(io::FileSystem& fs, const Plan& plan,
                                          const std::map<std::string, Made>& made, const Step& step);

// The step behind which the training began that gave a step's output: that of the last rung before it whose
// part has another output; 0 where it began at the first step. The step is in `made`.
int64_t began_behind(const Plan& plan, const std::map<std::string, Made>& made, const Step& step);

// Why a step is not done although nothing failed: a training that it is of ended at a rung, or an input of it
// is left out itself; empty: it is to be done. A step of whole families (fit, rung) is left out when all of
// their steps are; else it is of the others. A part of the same training goes on with what there is. All
// inputs are in `made` or in `left`, the names of steps that are left out.
Result<std::string> left_out(io::FileSystem& fs, const Plan& plan, const std::map<std::string, Made>& made,
                             const std::set<std::string>& left, const Step& step);

// Whether a step that is left out may be missing as this input: one of a family.
bool is_of_family(const Step& step, const std::string& parameter);
// The inputs of a step of families that are there, in the plan's order.
std::vector<const Step*> members_there(const Plan& plan, const std::map<std::string, Made>& made,
                                       const Step& step);

// How many members go on at most behind the rung that a training waits for: those of its family that have not
// been stopped yet. Nothing where it waits for none.
std::optional<int64_t> most_that_go_on(const Plan& plan, const Step& training);

}  // namespace ostro::lab
