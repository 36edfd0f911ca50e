// Coverage: counts the combinations of op, dtype and place that random programs have reached.
#pragma once

#include <set>
#include <vector>

#include "combination.h"
#include "random_program.h"

namespace ostro::fuzz {

class Coverage {
 public:
  // Counts the ops that the results depend on; as differentiated those through which a derivative flows and
  // those that gradients depend on.
  void add(const RandomCase& c);
  // Legal combinations never reached.
  std::vector<Combination> missing() const;
  double median_ops() const;

 private:
  std::set<Combination> seen_;
  std::vector<int64_t> op_counts_;
};

}  // namespace ostro::fuzz
