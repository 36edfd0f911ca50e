// Elements of safetensors files as f32, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::hf {

// "F32", "BF16", "F16": the dtypes that weights are read in. Every value of them is an f32.
bool is_weight_dtype(std::string_view dtype);
// Fills `to`, one f32 for each element.
void elements_to_f32(std::string_view dtype, std::span<const std::byte> from, std::span<float> to);
// The other way, each value rounded to the nearest, ties to even. What is too large becomes infinite.
void elements_from_f32(std::string_view dtype, std::span<const float> from, std::span<std::byte> to);
// The index of the first finite value that elements_from_f32 would make infinite.
std::optional<size_t> first_unfit(std::string_view dtype, std::span<const float> values);
// What is said of a tensor that was read with such an element.
std::string not_finite(std::string_view file, std::string_view tensor, int64_t element);

}  // namespace ostro::hf
