// Which combinations of op, dtype and place random programs have reached.
#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "random_program.h"

namespace ostro::fuzz {

class Coverage {
 public:
  // Counts the ops that the results depend on; true when a combination was new.
  bool add(const RandomCase& c);
  // Whether add() would find something new.
  bool would_gain(const RandomCase& c) const;
  int64_t reached() const { return static_cast<int64_t>(seen_.size()); }
  // Legal combinations never reached: "dot bf16", "dot bf16 in scan", "dot bf16 cut by leaves".
  std::vector<std::string> missing() const;
  // Ops never reached in a differentiated program although they have a derivative.
  std::vector<std::string> missing_differentiated() const;
  double median_ops() const;

 private:
  using Seen = std::set<std::tuple<ir::OpKind, ir::DType, std::string>>;
  static void add_block(const ir::Block& block, const RandomCase& c, bool in_scan, Seen& seen, int64_t& ops);

  Seen seen_;
  std::vector<int64_t> op_counts_;
};

}  // namespace ostro::fuzz
