#include "attention/masks.cuh"
#include "attention/reach.cuh"
#include "attention/tiles.cuh"
#include "attention/tiled_backward.cuh"
// The gradients of attention, head_dim up to 256.

TILED_KERNEL(attention_dq_256_f32, AttentionArgs, 256, 1) { tiled_dq<64, 256, 128, 256, 32, 32, false>(a); }
TILED_KERNEL(attention_dq_256_bf16, AttentionArgs, 256, 1) { tiled_dq<64, 256, 128, 256, 32, 32, true>(a); }
TILED_KERNEL(attention_dkv_256_f32, AttentionArgs, 256, 1) { tiled_dkv<32, 256, 256, 256, 32, 32, false>(a); }
TILED_KERNEL(attention_dkv_256_bf16, AttentionArgs, 256, 1) { tiled_dkv<32, 256, 256, 256, 32, 32, true>(a); }
