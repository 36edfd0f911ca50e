#include "attention/masks.cuh"
#include "attention/reach.cuh"
#include "attention/rows.cuh"
#include "attention/slices.cuh"
#include "attention/sliced_tiles.cuh"
#include "attention/sliced_forward.cuh"
// The output of attention on integers, head_dim up to 128.

TILED_KERNEL(attention_sliced_128, AttentionArgs, 128, 1) { sliced_attention<128>(a); }
