#include "ostro/hf/elements.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "ostro/base/check.h"
#include "ostro/numerics/arrays.h"

namespace ostro::hf {
namespace {

// IEEE half precision: 1 sign, 5 exponent, 10 fraction bits.
float from_half(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000U) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fU, fraction = h & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = static_cast<float>(fraction) * 0x1p-24F;  // exact
  return sign != 0 ? -small : small;
}

uint16_t to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<uint16_t>(sign | 0x7e00U);  // NaN
  if (magnitude >= 0x47800000U) return static_cast<uint16_t>(sign | 0x7c00U);
  // `drop`: the number of low bits of the significand that are rounded away.
  const uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return sign;  // below half of the smallest
  const bool subnormal = exponent < 113;
  const uint32_t drop = subnormal ? 126 - exponent : 13;
  const uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
  uint32_t kept = significand >> drop;
  const uint32_t rest = significand & ((1U << drop) - 1), half = 1U << (drop - 1);
  if (rest > half || (rest == half && (kept & 1U) != 0)) ++kept;
  // A carry goes into the exponent, where it belongs.
  const uint32_t out = subnormal ? kept : kept + ((exponent - 113) << 10);
  return static_cast<uint16_t>(sign | out);
}

// Denormals stay, which numerics::to_bf16 makes zeros: what is written is what was read.
uint16_t to_bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>(bits >> 16 | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

template <class Stored, class Convert>
void read_all(std::span<const std::byte> from, std::span<float> to, const Convert& convert) {
  for (size_t i = 0; i < to.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, from.data() + i * sizeof(Stored), sizeof(Stored));
    to[i] = convert(stored);
  }
}

template <class Stored, class Convert>
void write_all(std::span<const float> from, std::span<std::byte> to, const Convert& convert) {
  for (size_t i = 0; i < from.size(); ++i) {
    const Stored stored = convert(from[i]);
    std::memcpy(to.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
}

}  // namespace

bool is_weight_dtype(std::string_view dtype) { return dtype == "F32" || dtype == "BF16" || dtype == "F16"; }

void elements_to_f32(std::string_view dtype, std::span<const std::byte> from, std::span<float> to) {
  if (dtype == "F32") return read_all<float>(from, to, [](float v) { return v; });
  if (dtype == "BF16")
    return read_all<numerics::Bf16>(from, to, [](numerics::Bf16 v) { return numerics::to_f32(v); });
  OSTRO_CHECK(dtype == "F16", "no weights are {}", dtype);
  read_all<uint16_t>(from, to, from_half);
}

void elements_from_f32(std::string_view dtype, std::span<const float> from, std::span<std::byte> to) {
  if (dtype == "F32") return write_all<float>(from, to, [](float v) { return v; });
  if (dtype == "BF16") return write_all<uint16_t>(from, to, to_bf16_bits);
  OSTRO_CHECK(dtype == "F16", "no weights are {}", dtype);
  write_all<uint16_t>(from, to, to_half);
}

std::optional<size_t> first_unfit(std::string_view dtype, std::span<const float> values) {
  // The bits of the least magnitude that rounds to infinity.
  const uint32_t least = dtype == "F16" ? 0x477ff000U : dtype == "BF16" ? 0x7f7f8000U : 0x7f800000U;
  const auto first = numerics::first_from(values, least);
  for (size_t i = first.value_or(values.size()); i < values.size(); ++i)
    if (std::isfinite(values[i]) && numerics::first_from(values.subspan(i, 1), least)) return i;
  return std::nullopt;
}

std::string not_finite(std::string_view file, std::string_view tensor, int64_t element) {
  return fmt::format("{}: tensor {}: element {} is infinite or NaN; write the model again from its source",
                     file, tensor, element);
}

}  // namespace ostro::hf
