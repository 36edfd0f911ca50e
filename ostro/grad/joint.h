// build_joint: makes the joint block: a block's forward ops followed by its backward ops. Private to the
// room.
#pragma once

#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"

namespace ostro::grad_internal {

// The parts of a block that are differentiated.
struct JointRequest {
  std::vector<char> param_active;   // differentiate with respect to this parameter
  std::vector<char> result_active;  // the caller passes a cotangent of this result
  std::vector<char> param_use;  // the parameter is a `use`, or a layout op of one: its cotangent stays f32
  bool unit_seed = false;       // result 0's cotangent is the constant 1 instead of a parameter
};

struct Joint {
  ir::Block block;                     // parameters: f's, then cotangents of active results; no results set
  std::vector<ir::ValueId> results;    // f's results
  size_t forward_ops = 0;              // ops [0, forward_ops) are the forward part
  std::vector<ir::ValueId> ct_params;  // one per active result (empty with unit_seed)
  std::vector<ir::ValueId>
      param_cts;  // per parameter: cotangent in the parameter's dtype (-1: zero or inactive)
  std::vector<ir::ValueId> param_cts_wide;  // param_cts before rounding to bf16 (f32 sums)
};

// An error names the op that has no derivative and its call site.
Result<Joint> build_joint(const ir::Block& f, const JointRequest& request);

// For each result of f: whether it depends on an active parameter through differentiable ops.
std::vector<char> active_results(const ir::Block& f, const std::vector<char>& param_active);
// As active_results(), for every value of f.
std::vector<char> active_values(const ir::Block& f, const std::vector<char>& param_active);
// The operands of the scan that are active when those in `operand_active` are: a carry becomes active when
// the body writes an active value to it. Repeated until nothing changes.
std::vector<char> scan_active(const ir::Op& scan, std::vector<char> operand_active);

}  // namespace ostro::grad_internal
