#include "attention/masks.cuh"
#include "attention/reach.cuh"
#include "attention/tiles.cuh"
#include "attention/tiled_backward.cuh"
// The gradients of attention, head_dim up to 128.

TILED_KERNEL(attention_dq_128_f32, AttentionArgs, 128, 2) { tiled_dq<64, 128, 64, 128, 64, 32, false>(a); }
TILED_KERNEL(attention_dq_128_bf16, AttentionArgs, 128, 2) { tiled_dq<64, 128, 64, 128, 64, 32, true>(a); }
TILED_KERNEL(attention_dkv_128_f32, AttentionArgs, 128, 2) { tiled_dkv<32, 128, 128, 128, 32, 32, false>(a); }
TILED_KERNEL(attention_dkv_128_bf16, AttentionArgs, 128, 2) { tiled_dkv<32, 128, 128, 128, 32, 32, true>(a); }
