// FlopsLaw, optimum: what a run takes, as a law over the runs of a fit, and from it the size and the tokens
// for which a budget gives the lowest loss. Values; pure functions.
#pragma once

#include <optional>
#include <span>

#include "ostro/scaling/surface.h"

namespace ostro::scaling {

// The operations for a token, as factor * N^exponent: least squares over the logarithms.
struct FlopsLaw {
  double factor = 0, exponent = 0;
  double worst = 0;  // the largest distance of a run from the law, as a share of what it took
  double for_token(double parameters) const;
};
// At least two N differ.
FlopsLaw flops_law(std::span<const ScalingRun> runs);

struct Allocation {
  double parameters = 0, tokens = 0;
};
// The lowest loss of the surface where N and D take `flops` by the law. Nothing where one of the terms has no
// effect, so that the loss has no lowest place.
std::optional<Allocation> optimum(const Surface& surface, const FlopsLaw& law, double flops);

}  // namespace ostro::scaling
