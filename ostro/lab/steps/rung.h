// read_rung, rung_text: the decision of a rung, at which a halved sweep goes on with some of its trainings:
// the members with the lowest held-out losses. make_rung() in kinds.h writes it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ostro/lab/steps/work.h"

namespace ostro::lab {

// In the output of a step rung.
inline constexpr const char* kRungFile = "rung.json";

// A member of a rung, as its file has it.
struct RungMember {
  std::string run, evaluation;  // steps of the plan: the training up to the rung, and its evaluation
  int64_t step = 0;
  std::string loss;   // hexadecimal as in evaluations, or "nan" and the like
  int64_t place = 0;  // from 1; the lowest loss is the first
  bool kept = false;
};
// In the order of the plan. Errors: the file is missing or damaged.
Result<std::vector<RungMember>> read_rung(io::FileSystem& fs, const std::string& folder);

// What is in the file of a rung: a function of the evaluations in `made`, of the plan's order and of the
// share. Errors: those of reading; no member has a finite loss.
Result<std::string> rung_text(io::FileSystem& fs, const Plan& plan, const std::map<std::string, Made>& made,
                              const Step& rung);

}  // namespace ostro::lab
