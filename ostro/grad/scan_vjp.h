// emit_scan_forward, emit_scan_backward: the derivative of a loop. The forward loop also returns residuals,
// and a reversed loop reads them. Errors: those of the rules for the ops of the body. Private to the room.
#pragma once

#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/builder.h"

namespace ostro::grad_internal {

// The forward loop as emitted, and the inputs of the reversed loop.
struct ScanForward {
  std::vector<ir::ValueId> results;  // the original results
  std::vector<ir::ValueId>
      residuals;               // values of the body that the backward part reads, stacked over iterations
  ir::Block backward;          // one step backward; parameters in the order of the lists below, each once:
  std::vector<size_t> consts;  //   operands that are constants of the backward step
  std::vector<size_t> ct_carries;   //   carries whose cotangent is a carry of the reversed loop
  std::vector<size_t> accumulated;  //   constant operands whose cotangent is accumulated
  std::vector<size_t> xs;           //   operands whose slices the backward step reads
  //                                        the residuals, then
  std::vector<size_t> ct_ys;  //   stacked results whose cotangent comes in
  // Results of `backward`: cotangents of ct_carries, new accumulators, then cotangents of ct_xs.
  std::vector<size_t> ct_xs;  // operands (scanned) that get a stacked cotangent
  ir::Attrs attrs;            // of the original loop
};

// Emits the forward loop for `op` (a scan of another block) on operands of b's block.
Result<ScanForward> emit_scan_forward(ir::Builder& b, const ir::Op& op,
                                      const std::vector<ir::ValueId>& operands,
                                      const std::vector<char>& operand_active,
                                      const std::vector<char>& operand_use);

// Emits the reversed loop; cts are cotangents of the original results (-1: zero). Returns one contribution
// per operand (-1: none).
Result<std::vector<ir::ValueId>> emit_scan_backward(ir::Builder& b, const ScanForward& forward,
                                                    const std::vector<ir::ValueId>& operands,
                                                    const std::vector<ir::ValueId>& cts);

}  // namespace ostro::grad_internal
