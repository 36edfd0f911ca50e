#include "products/strided.cuh"
STRIDED_KERNELS(strided_f32_16x32, 32, 1, 1, 1, 4, 8, 1, 1, 32, false)
