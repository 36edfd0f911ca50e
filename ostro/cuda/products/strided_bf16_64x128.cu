#include "products/strided.cuh"
STRIDED_KERNELS(strided_bf16_64x128, 128, 2, 1, 4, 8, 4, 2, 2, 16, true)
