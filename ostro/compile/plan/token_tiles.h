// tile_heads: runs a model's head on tiles of a few hundred tokens. Internal to compile.
//
// The head (token_head.h) is the product that makes the logits, the cross-entropy, and the products that read
// its gradient. So the logits of all tokens are never in memory at once.
#pragma once

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// Replaces these steps by one step of kind kTiles. `target` limits a tile by tokens, or by the bytes of its
// logits. No bit changes: the logits of a token depend on no other token (numerics.md, N6, N7, N11), and the
// gradient of the weights continues from tile to tile, in multiples of 32 tokens (N7, continuation) or, where
// products are of integers, of the block (N20); draws are numbered by the token's place in the leaf. Call it
// after add_gradient_epilogues and before plan_memory. With `reasons`, a cross-entropy that is not tiled says
// why in Step::not_fused.
void tile_heads(Plan& plan, const numerics::LeafTable& leaves, const Target& target, bool reasons);

}  // namespace ostro::compile
