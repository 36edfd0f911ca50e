#include "attention/masks.cuh"
#include "attention/reach.cuh"
#include "attention/tiles.cuh"
#include "attention/tiled_forward.cuh"
// The output of attention, head_dim up to 64.

TILED_KERNEL(attention_64_f32, AttentionArgs, 128, 3) { tiled_attention<64, 128, 64, 64, 64, 64, false>(a); }
TILED_KERNEL(attention_64_bf16, AttentionArgs, 128, 2) { tiled_attention<64, 128, 64, 64, 64, 64, true>(a); }
