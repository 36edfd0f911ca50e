#include "ostro/cuda/admission/tensor_rule.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <vector>

#include "ostro/cuda/text/arguments_host.h"
#include "ostro/cuda/text/device_text.h"
#include "ostro/numerics/tc16.h"

namespace ostro::cuda {
namespace {

constexpr const char* kTensorText = "admission/tensor_rule.cu";
constexpr int64_t kRows = 16, kColumns = 8;

// As tensor_mixed, tensor_operand and tensor_start of tensor_rule.cu.
uint32_t tensor_mixed(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}
uint32_t tensor_operand(uint32_t c, uint32_t side, uint32_t i, uint32_t k) {
  const uint32_t x = tensor_mixed((c * 2 + side) * 256 + i * 16 + k), kind = c % 4;
  if (x >> 28 == 0) return x & 0x8000u;
  if (kind == 3) return x >> 29 == 1 ? x & 0xffffu : x & 0xbfffu;
  const uint32_t low = kind == 0 ? 122 : kind == 1 ? 97 : 46, span = kind == 0 ? 8 : kind == 1 ? 61 : 24;
  return (x & 0x807fu) | (kind == 2 && x >> 28 == 1 ? 0 : low + (x >> 16 & 0xff) % span) << 7;
}
uint32_t tensor_start(uint32_t c, uint32_t at) {
  const uint32_t x = tensor_mixed(c * 128 + at + 0x5eed5eedu), kind = c % 4;
  if (x % 4 == 0) return 0;
  const uint32_t low = kind == 0 ? 118 : kind == 1 ? 67 : 0, span = kind == 0 ? 16 : kind == 1 ? 120 : 8;
  return kind == 3 ? x : (x & 0x807fffffu) | (low + (x >> 8 & 0xff) % span) << 23;
}

uint32_t host_step(uint32_t c, int64_t at) {
  const auto i = static_cast<uint32_t>(at / kColumns), j = static_cast<uint32_t>(at % kColumns);
  numerics::Tc16Step step;
  for (uint32_t k = 0; k < numerics::kTc16Group; ++k)
    step.add_product(tensor_operand(c, 0, i, k) << 16, tensor_operand(c, 1, j, k) << 16);
  step.add(tensor_start(c, static_cast<uint32_t>(at)));
  return std::bit_cast<uint32_t>(step.result());
}

bool is_nan(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

}  // namespace

Result<BitsCompared> compare_tensor_rule(Device& device, int64_t products) {
  ASSIGN_OR_RETURN(const auto code, device.load(kTensorText, device_file_text(kTensorText)));
  ASSIGN_OR_RETURN(const Kernel kernel, code->kernel("tensor_steps"));
  BitsCompared out{.name = "products by the rule of tensor cores (N23)",
                   .cases = products * kRows * kColumns};
  ASSIGN_OR_RETURN(const auto block, device.memory().allocate(4 * out.cases));
  args::BitsArgs a = {};
  a.to = device.address(*block).at;
  a.step = 1;
  a.count = out.cases;
  RETURN_IF_ERROR(device.launch(kernel, LaunchShape{.x = products, .threads = 32},
                                std::as_bytes(std::span(&a, 1)), "the check of " + out.name));
  std::vector<uint32_t> got(static_cast<size_t>(out.cases));
  RETURN_IF_ERROR(device.memory().read(*block, 0, std::as_writable_bytes(std::span(got))));
  for (int64_t n = 0; n < out.cases; ++n) {
    const auto c = static_cast<uint32_t>(n / (kRows * kColumns));
    const uint32_t want = host_step(c, n % (kRows * kColumns)), seen = got[static_cast<size_t>(n)];
    if (want == seen || (is_nan(want) && is_nan(seen))) continue;
    if (out.differ++ == 0) out.first = fmt::format("case {}: {:#010x}, not {:#010x}", n, seen, want);
  }
  return out;
}

}  // namespace ostro::cuda
