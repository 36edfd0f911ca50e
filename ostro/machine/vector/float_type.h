// FloatType: the two element types that kernels read and write.
#pragma once

#include <cstdint>

namespace ostro::machine {

// bf16 elements are uint16_t, the high half of the f32 of the same value.
enum class FloatType { kF32, kBf16 };

inline int64_t float_size(FloatType type) { return type == FloatType::kF32 ? 4 : 2; }

}  // namespace ostro::machine
