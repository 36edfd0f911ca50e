// OpSample, op_samples: one small program per op, so that a test can ask every rule about every op.
#pragma once

#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::tests {

struct OpSample {
  ir::OpKind kind;
  ir::Program program;  // its last op is the sampled one; results are that op's results
  bool differentiable;  // a cotangent of result 0 reaches parameter 0
};

// Every op but collectives (they need a group; dist and spmd test them) has at least one sample.
std::vector<OpSample> op_samples();

}  // namespace ostro::tests
