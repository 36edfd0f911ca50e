// compare_tensor_rule: the check of docs/spec/numerics.md, N23.8, for a device whose tensor cores are said to
// sum bf16 products as N23 says (DeviceLimits::tensor_rule). Thread-safe.
#pragma once

#include <cstdint>

#include "ostro/cuda/admission/admission.h"

namespace ostro::cuda {

// Compares the steps of `products` products of 16 x 8 outputs with the scalar definition: ordinary numbers,
// wide exponents, denormals and all bit patterns. Errors: those of the device.
Result<BitsCompared> compare_tensor_rule(Device& device, int64_t products);

}  // namespace ostro::cuda
