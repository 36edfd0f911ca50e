// Elements of safetensors files as f32, and back.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::hf {

// "F32", "BF16", "F16": the dtypes that weights are read in. Every value of them is an f32.
bool is_weight_dtype(std::string_view dtype);
// Fills `to`, one f32 for each element.
void elements_to_f32(std::string_view dtype, std::span<const std::byte> from, std::span<float> to);
// The other way, each value rounded to the nearest, ties to even. What is too large for F16 becomes infinite.
void elements_from_f32(std::string_view dtype, std::span<const float> from, std::span<std::byte> to);

}  // namespace ostro::hf
