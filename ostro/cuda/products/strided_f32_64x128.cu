#include "products/strided.cuh"
STRIDED_KERNELS(strided_f32_64x128, 128, 3, 1, 4, 8, 4, 2, 2, 8, false)
