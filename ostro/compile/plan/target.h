// Target: what lowering must know of the engine that will run the plan. It changes steps, memory and speed,
// never a bit.
#pragma once

#include <cstdint>

#include "ostro/ir/program/op.h"

namespace ostro::compile {

struct Target {
  // True when the engine's routine of an op takes operands with any strides. For the others an operand that
  // is not dense is copied first.
  bool (*reads_views)(ir::OpKind) = ir::is_elementwise;
  // The engine runs steps on the pieces of another step's output (Step::epilogues).
  bool epilogues = true;

  // How many tokens the model's head and its cross-entropy process at a time (a tile). 0: of about tile_bytes
  // of logits, but at least least_tile_rows, when the logits are larger than tile_bytes; -1: always all
  // tokens. With fewer rows, packing the weights for each tile would cost too much.
  int64_t tile_rows = 0;
  int64_t tile_bytes = int64_t{64} << 20;
  int64_t least_tile_rows = 256;

  // Generated kernels, in elements. The fewest that are worth a thread; the longest row of which values are
  // saved from one pass to the next.
  int64_t elements_for_thread = 16384;
  int64_t saved_elements = 8192;
  // A serial sum takes this many outputs at a time, fewer (but not less than least_summed) when there would
  // be fewer than summed_pieces pieces to share among threads.
  int64_t most_summed = 256, least_summed = 64, summed_pieces = 8;
};

}  // namespace ostro::compile
