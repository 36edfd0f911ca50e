#include "attention/masks.cuh"
#include "attention/reach.cuh"
#include "attention/tiles.cuh"
#include "attention/tiled_forward.cuh"
// The output of attention, head_dim up to 128.

TILED_KERNEL(attention_128_f32, AttentionArgs, 128, 2) { tiled_attention<64, 128, 64, 128, 64, 32, false>(a); }
TILED_KERNEL(attention_128_bf16, AttentionArgs, 128, 2) { tiled_attention<64, 128, 64, 128, 64, 32, true>(a); }
