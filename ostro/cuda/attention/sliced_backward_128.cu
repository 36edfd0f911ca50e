#include "attention/masks.cuh"
#include "attention/reach.cuh"
#include "attention/rows.cuh"
#include "attention/slices.cuh"
#include "attention/sliced_tiles.cuh"
#include "attention/sliced_backward.cuh"
// The gradient of attention on integers, head_dim up to 128.

TILED_KERNEL(attention_dq_sliced_128, AttentionArgs, 128, 1) { sliced_dq<128>(a); }
TILED_KERNEL(attention_dk_sliced_128, AttentionArgs, 128, 1) { sliced_dkv<128, true>(a); }
TILED_KERNEL(attention_dv_sliced_128, AttentionArgs, 128, 1) { sliced_dkv<128, false>(a); }
