// elements_to_f32, elements_from_f32: convert elements of safetensors files to f32 and back. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::hf {

// True for the dtypes that weights are read in: "F32", "BF16", "F16". f32 holds every value of them exactly.
bool is_weight_dtype(std::string_view dtype);
// Fills `to`, one f32 for each element of `from`, exactly.
void elements_to_f32(std::string_view dtype, std::span<const std::byte> from, std::span<float> to);
// Fills `to` with the elements of `from`, rounded to the nearest, ties to even. A value that is too large
// becomes infinite.
void elements_from_f32(std::string_view dtype, std::span<const float> from, std::span<std::byte> to);
// The index of the first finite value that elements_from_f32 would make infinite.
std::optional<size_t> first_unfit(std::string_view dtype, std::span<const float> values);
// The error message for a tensor with an element that is infinite or NaN.
std::string not_finite(std::string_view file, std::string_view tensor, int64_t element);

}  // namespace ostro::hf
