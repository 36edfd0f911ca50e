// Products of few rows, without intrinsics.
#include "ostro/machine/vector/vec_generic.h"
#include "ostro/products/few/kernels/few_rows.inc.h"

namespace ostro::kernels {
namespace {

using machine::VecGeneric;

struct TurnGeneric {
  static void turn(const void* const* w, int64_t byte, float* out) {
    for (int j = 0; j < VecGeneric::kWidth; ++j) {
      float line[kFewWords];
      std::memcpy(line, static_cast<const char*>(w[j]) + byte, sizeof line);
      for (int i = 0; i < kFewWords; ++i) std::memcpy(out + i * 2 * VecGeneric::kWidth + j, line + i, 4);
    }
  }
  static VecGeneric::Words words(const float* at) {
    VecGeneric::Words w;
    std::memcpy(&w, at, sizeof w);
    return w;
  }
  static VecGeneric low(const float* at) { return {VecGeneric::as<VecGeneric::Floats>(words(at) << 16)}; }
  static VecGeneric high(const float* at) {
    return {VecGeneric::as<VecGeneric::Floats>(words(at) & 0xffff0000u)};
  }
};

using FewGeneric = FewRowsOf<VecGeneric, TurnGeneric>;

}  // namespace

const FewKernel& few_f32_generic() {
  static constexpr FewKernel kKernel = FewGeneric::f32(2, 2);
  return kKernel;
}

const FewKernel& few_bf16_generic() {
  static constexpr FewKernel kKernel = FewGeneric::bf16(1, 1);
  return kKernel;
}

}  // namespace ostro::kernels
