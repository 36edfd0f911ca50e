#include "attention/masks.cuh"
#include "attention/reach.cuh"
#include "attention/tiles.cuh"
#include "attention/tiled_backward.cuh"
// The gradients of attention, head_dim up to 64.

TILED_KERNEL(attention_dq_64_f32, AttentionArgs, 128, 3) { tiled_dq<64, 128, 64, 64, 64, 64, false>(a); }
TILED_KERNEL(attention_dq_64_bf16, AttentionArgs, 128, 2) { tiled_dq<64, 128, 64, 64, 64, 64, true>(a); }
TILED_KERNEL(attention_dkv_64_f32, AttentionArgs, 128, 2) { tiled_dkv<64, 128, 64, 64, 64, 64, false>(a); }
TILED_KERNEL(attention_dkv_64_bf16, AttentionArgs, 128, 2) { tiled_dkv<64, 128, 64, 64, 64, 64, true>(a); }
