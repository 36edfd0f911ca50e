#include "attention/masks.cuh"
#include "attention/reach.cuh"
#include "attention/tiles.cuh"
#include "attention/tiled_forward.cuh"
// The output of attention, head_dim up to 256.

TILED_KERNEL(attention_256_f32, AttentionArgs, 256, 1) { tiled_attention<64, 256, 128, 256, 32, 32, false>(a); }
TILED_KERNEL(attention_256_bf16, AttentionArgs, 256, 1) { tiled_attention<64, 256, 128, 256, 32, 32, true>(a); }
