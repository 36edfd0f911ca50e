// admit, compare_bits, compare_tensor_rule: check that a device computes as docs/spec/numerics.md says, by
// comparing it with the host case by case.
//
// Many cases are of the kind in which machines differ: results near 2^-126, which show a flush to zero before
// rounding or by a comparison; ties; special values. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/cuda/admission/compare.h"

namespace ostro::cuda {

// Compares `cases` cases of every operation, with `threads` threads of the host. With 2^32 cases, operations
// of one operand get every number. Errors: those of the device.
Result<std::vector<BitsCompared>> compare_bits(gpu::Device& device, int64_t cases, int threads);

// The check of docs/spec/numerics.md, N23.8, for a device whose tensor cores are said to sum bf16 products as
// N23 says (gpu::DeviceLimits::tensor_rule): the steps of `products` products of 16 x 8 outputs, of ordinary
// numbers, wide exponents, denormals and all bit patterns. Errors: those of the device.
Result<BitsCompared> compare_tensor_rule(gpu::Device& device, int64_t products, int threads);

// The check before a device is used; takes some milliseconds. Error: kUnsupported when an operation differs;
// the device must not be used then.
Status admit(gpu::Device& device);

}  // namespace ostro::cuda
