#include "attention/masks.cuh"
#include "attention/reach.cuh"
#include "attention/rows.cuh"
#include "attention/slices.cuh"
#include "attention/sliced_tiles.cuh"
#include "attention/sliced_backward.cuh"
// The gradient of attention on integers, head_dim up to 64.

TILED_KERNEL(attention_dq_sliced_64, AttentionArgs, 128, 1) { sliced_dq<64>(a); }
TILED_KERNEL(attention_dk_sliced_64, AttentionArgs, 128, 1) { sliced_dkv<64, true>(a); }
TILED_KERNEL(attention_dv_sliced_64, AttentionArgs, 128, 1) { sliced_dkv<64, false>(a); }
