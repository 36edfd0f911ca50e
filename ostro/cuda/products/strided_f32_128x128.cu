#include "products/strided.cuh"
STRIDED_KERNELS(strided_f32_128x128, 128, 2, 2, 2, 4, 8, 4, 2, 8, false)
