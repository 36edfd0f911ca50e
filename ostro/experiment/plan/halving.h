// add_halving_steps: a sweep that is halved, as the key `halving` of a step of kind train has it, expanded
// into steps: the trainings up to each rung, their evaluations, and the rung, which says who goes on. And
// what these steps are, for the rooms that do them. Pure functions; docs/guide/lab.md, "Halving".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/experiment/plan/plan.h"

namespace ostro::lab {

// Parameters of trainings that add_halving_steps() sets: the step at which a part ends, the same training up
// to the rung before, and that rung. No plan has them.
inline constexpr const char* kUntil = "until";
inline constexpr const char* kBegun = "begun";
inline constexpr const char* kRung = "rung";  // also the kind of the steps that decide

// Replaces each step NAME of the map that has `halving` by NAME-AT, NAME-AT-eval and NAME-AT-rung for each AT
// of its list, and NAME, which is the training from the last rung to its end. Errors, with place: a key that
// is unknown, missing or of a wrong form; no sweep; another kind than train; a training with phases, flops or
// a forecast; a step that is there already; a rung that was written by hand; another step that names one of
// NAME-AT, NAME-AT-eval and NAME-AT-rung.
Status add_halving_steps(config::Node& steps);

// The share of its members that a rung keeps, above 0 and below 1.
struct KeptShare {
  int64_t part = 0, of = 1;

  // "1/3", or a number with digits behind a point, in the lowest terms; nothing for another text.
  static std::optional<KeptShare> parse(const std::string& text);
  std::string text() const { return std::to_string(part) + "/" + std::to_string(of); }
  // How many of so many members stay: the whole number that is not above the share, and at least one.
  int64_t kept(int64_t members) const;
};

// The step at which a training waits for its rung; nothing where it goes to its end. In a sanity run the
// first rung is at step 1, the second one at step 2, and so on.
std::optional<int64_t> rung_step(const Plan& plan, const Step& training);
// Whether a step is a training up to a rung, or the evaluation of such a one. The training NAME, which goes
// to the end, is none: it has all that its parts have.
bool is_part_of_halving(const Plan& plan, const Step& step);
// The parts of the same member as a training, the first rung's first, and the training that goes to the end,
// which is the last one. Of a training that is not halved: itself.
std::vector<const Step*> parts_of_member(const Plan& plan, const Step& training);

}  // namespace ostro::lab
