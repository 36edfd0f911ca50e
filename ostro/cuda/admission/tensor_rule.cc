#include "ostro/cuda/admission/admission.h"

#include <bit>

#include "ostro/cuda/text/device_text.h"
#include "ostro/numerics/tc16.h"

namespace ostro::cuda {
namespace {

constexpr const char* kTensorText = "admission/tensor_rule.cu";

// As tensor_operand and tensor_start of tensor_rule.cu.
uint32_t tensor_operand(uint32_t c, uint32_t side, uint32_t i, uint32_t k) {
  const uint32_t x = mixed((c * 2 + side) * 256 + i * 16 + k), kind = c % 4;
  if (x >> 28 == 0) return x & 0x8000u;
  if (kind == 3) return x >> 29 == 1 ? x & 0xffffu : x & 0xbfffu;
  const uint32_t low = kind == 0 ? 122 : kind == 1 ? 97 : 46, span = kind == 0 ? 8 : kind == 1 ? 61 : 24;
  return (x & 0x807fu) | (kind == 2 && x >> 28 == 1 ? 0 : low + (x >> 16 & 0xff) % span) << 7;
}
uint32_t tensor_start(uint32_t c, uint32_t at) {
  const uint32_t x = mixed(c * 128 + at + 0x5eed5eedu), kind = c % 4;
  if (x % 4 == 0) return 0;
  const uint32_t low = kind == 0 ? 118 : kind == 1 ? 67 : 0, span = kind == 0 ? 16 : kind == 1 ? 120 : 8;
  return kind == 3 ? x : (x & 0x807fffffu) | (low + (x >> 8 & 0xff) % span) << 23;
}

uint32_t host_step(const args::BitsArgs& a, int64_t number) {
  const uint32_t c = number_of(a, number / kProductBits);
  const auto at = static_cast<uint32_t>(number % kProductBits);
  numerics::Tc16Step step;
  for (uint32_t k = 0; k < numerics::kTc16Group; ++k)
    step.add_product(tensor_operand(c, 0, at / 8, k) << 16, tensor_operand(c, 1, at % 8, k) << 16);
  step.add(tensor_start(c, at));
  return std::bit_cast<uint32_t>(step.result());
}

}  // namespace

Result<BitsCompared> compare_tensor_rule(gpu::Device& device, int64_t products, int threads) {
  ASSIGN_OR_RETURN(const auto code, device.load(kTensorText, device_file_text(kTensorText)));
  ASSIGN_OR_RETURN(const gpu::Kernel kernel, code->kernel("tensor_steps"));
  args::BitsArgs a = {};
  a.step = 1;
  return compare_results(
      device,
      {"products by the rule of tensor cores (N23)", kernel, 32, kProductBits, kProductBits, host_step}, a,
      products * kProductBits, threads);
}

}  // namespace ostro::cuda
