#include "products/strided.cuh"
STRIDED_KERNELS(strided_bf16_16x32, 32, 1, 1, 1, 4, 8, 1, 1, 32, true)
