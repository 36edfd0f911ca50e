// Every op has a routine, or something else that runs it.
#include <doctest/doctest.h>

#include <set>

#include "ostro/cpu/routines/op_call.h"

namespace ostro::cpu {

using ir::OpKind;

TEST_CASE("every op has a routine, but for those that become views, other steps or constants") {
  const std::set<OpKind> without = {
      OpKind::constant,                                                           // Plan::constants
      OpKind::broadcast,  OpKind::transpose, OpKind::rename, OpKind::split_axis,  // views
      OpKind::merge_axes, OpKind::slice,     OpKind::split,  OpKind::unstack,
      OpKind::reverse,                   // views, copies
      OpKind::dot,                       // Gemm
      OpKind::scan,       OpKind::cond,  // loops, branches
      OpKind::custom,                    // inlined
  };
  for (int i = 0; i < ir::kOpCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    CHECK_MESSAGE((op_routine(kind) == nullptr) == (without.count(kind) != 0), ir::op_name(kind));
  }
}

}  // namespace ostro::cpu
