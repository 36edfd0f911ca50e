// Target: the properties of the engine that will run a plan, as far as lowering depends on them. A value. It
// changes steps, memory and speed, never a bit.
#pragma once

#include <cstdint>

#include "ostro/ir/program/op.h"

namespace ostro::compile {

struct Target {
  // True for an op whose routine in the engine takes operands with any strides. For every other op, operands
  // that are not dense are copied first.
  bool (*reads_views)(ir::OpKind) = ir::is_elementwise;
  // The engine runs fingerprints on the pieces of a kernel's output (Step::epilogues); otherwise they are
  // steps. The gradient of a cross-entropy is an epilogue on every engine.
  bool fingerprint_epilogues = true;
  // Products pack their second operand, and may keep it packed from tile to tile (Step::keeps_b).
  bool packs = true;

  // The model's head and its cross-entropy process the tokens in tiles of tile_rows. -1: all tokens are one
  // tile. 0: logits of at most tile_bytes are one tile; larger ones are cut into tiles of about tile_bytes,
  // each of at least least_tile_rows tokens, because each tile packs, or reads, the weights again.
  int64_t tile_rows = 0;
  int64_t tile_bytes = int64_t{64} << 20;
  int64_t least_tile_rows = 256;

  // For generated kernels, in elements. A thread gets at least elements_for_thread. A kernel that passes over
  // a row several times saves values between the passes if the row has at most saved_elements.
  int64_t elements_for_thread = 16384;
  int64_t saved_elements = 8192;
  // A serial sum computes most_summed outputs at a time. It computes fewer, at least least_summed, when
  // threads would otherwise share fewer than summed_pieces pieces.
  int64_t most_summed = 256, least_summed = 64, summed_pieces = 8;
};

}  // namespace ostro::compile
