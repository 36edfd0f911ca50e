// A model's head by tiles of tokens: the product that makes logits, the cross-entropy that reads them, and
// the products that read its gradient run for some hundred tokens at a time, so that the logits of all tokens
// never exist. Internal to compile.
#pragma once

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// Replaces these steps by one of kind kTiles; `tile_rows` as LowerOptions says. Each token's logits are its
// own chains (numerics.md, N6, N7, N11); the gradient of the weights goes on from tile to tile, which are
// multiples of 32 tokens (N7, continuation): no bit changes. Behind put_cross_entropy_gradients_behind,
// before buffers have places. With `reasons`, a cross-entropy that stays whole says why in Step::not_fused.
void tile_heads(Plan& plan, const numerics::LeafTable& leaves, int64_t tile_rows, bool reasons);

}  // namespace ostro::compile
