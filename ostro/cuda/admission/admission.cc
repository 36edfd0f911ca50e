#include "ostro/cuda/admission/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ostro/cuda/text/device_text.h"
#include "ostro/numerics/bf16.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/sums.h"

namespace ostro::cuda {
namespace {

constexpr const char* kText = "admission/bits.cu";
constexpr const char* kOperations[] = {"f32 add",          "f32 mul",  "f32 div",  "f32 fma", "f32 sqrt",
                                       "f32 to bf16 (N1)", "exp (N3)", "log (N3)", "sigmoid", "tanh",
                                       "E of N9"};
static_assert(std::size(kOperations) == args::BITS_OPS);
constexpr int64_t kAtStart = 1 << 12;

struct Operands {
  uint32_t x, y, z;
};

// As draw_operands of bits.cu.
Operands draw_operands(uint32_t c, int near) {
  const uint32_t a = mixed(3 * c), b = mixed(3 * c + 1), d = mixed(3 * c + 2);
  if (near == 0) return {a, b, d};
  const int wanted = static_cast<int>(d >> 8 & 7) - 4, e = static_cast<int>(a >> 23 & 127) + 1;
  const int other = std::clamp(near == 1 ? 128 + wanted - e : e + 126 + wanted, 0, 254);
  const uint32_t x_bits = (d & 16) != 0 ? 0x7fffffu : (d & 32) != 0 ? 0u : a & 0x7fffffu;
  const uint32_t y_bits = (d & 64) != 0 ? 0x7fffffu : b & 0x7fffffu;
  return {(a & 0x80000000u) | static_cast<uint32_t>(e) << 23 | x_bits,
          (b & 0x80000000u) | static_cast<uint32_t>(other) << 23 | y_bits,
          (d & 0x80000000u) | (d >> 16 & 3) << 23 | (mixed(d) & 0x7fffffu)};
}

float f32_of(uint32_t bits) { return std::bit_cast<float>(bits); }

float elementary_of(int64_t op, uint32_t c) {
  const Operands o = draw_operands(c, c % 4 < 2 ? 0 : op == args::BITS_DIV ? 2 : 1);
  const float x = f32_of(o.x), y = f32_of(o.y), z = f32_of(o.z), u = f32_of(c);
  switch (op) {
    case args::BITS_ADD: return x + z;
    case args::BITS_MUL: return x * y;
    case args::BITS_DIV: return x / y;
    case args::BITS_FMA: return numerics::fma_f32(x, y, z);
    case args::BITS_SQRT: return numerics::sqrt_f32(u);
    case args::BITS_BF16: return numerics::round_to_bf16(u);
    case args::BITS_EXP: return numerics::exp_f32(u);
    case args::BITS_LOG: return numerics::log_f32(u);
    case args::BITS_SIGMOID: return numerics::sigmoid_f32(u);
    case args::BITS_TANH: return numerics::tanh_f32(u);
    default: return numerics::exp2_block(x, y, f32_of((o.z & 0x03ffffffu) | 0x3c000000u));
  }
}

uint32_t host_result(const args::BitsArgs& a, int64_t i) {
  return std::bit_cast<uint32_t>(elementary_of(a.op, number_of(a, i)));
}

uint32_t host_sum(const args::BitsArgs& a, int64_t block) {
  return std::bit_cast<uint32_t>(numerics::striped_sum<float>(64, [&](int64_t i) {
    return f32_of((draw_operands(number_of(a, block * 64 + i), 1).x & 0x80ffffffu) | 0x3e000000u);
  }));
}

// As sum_integers of bits.cu: output `at` of the product of a block.
uint32_t host_integers_at(uint32_t c, uint32_t side, uint32_t i, uint32_t w) {
  const uint32_t x = mixed((c * 2 + side) * 128 + i * 8 + w);
  return x % 4 == 0 ? ((x & 16) != 0 ? 0x7f7f7f7fu : 0x81818181u) : x;
}
int32_t sum_of_four(uint32_t x, uint32_t y) {
  int32_t sum = 0;
  for (int shift = 0; shift < 32; shift += 8)
    sum += int32_t{static_cast<int8_t>(x >> shift)} * static_cast<int8_t>(y >> shift);
  return sum;
}
uint32_t host_product(const args::BitsArgs& a, int64_t number) {
  const uint32_t c = number_of(a, number / kProductBits);
  const auto i = static_cast<uint32_t>(number % kProductBits / 8), j = static_cast<uint32_t>(number % 8);
  int32_t sum = (1 << 20) + sum_of_four(host_integers_at(c, 0, i, 0), host_integers_at(c, 1, j, 7));
  for (uint32_t w = 0; w < 8; ++w)
    sum += sum_of_four(host_integers_at(c, 0, i, w), host_integers_at(c, 1, j, w));
  return static_cast<uint32_t>(sum);
}

}  // namespace

Result<std::vector<BitsCompared>> compare_bits(gpu::Device& device, int64_t cases, int threads) {
  ASSIGN_OR_RETURN(const auto code, device.load(kText, device_file_text(kText)));
  ASSIGN_OR_RETURN(const gpu::Kernel elementary, code->kernel("compare_bits"));
  ASSIGN_OR_RETURN(const gpu::Kernel sums, code->kernel("sum_stripes"));
  ASSIGN_OR_RETURN(const gpu::Kernel integers, code->kernel("sum_integers"));
  const int64_t some = std::min(cases, kMostBits);
  args::BitsArgs a = {};
  // Odd, so that 2^32 cases are all numbers.
  a.step = static_cast<uint64_t>((int64_t{1} << 32) / cases) | 1;
  std::vector<BitsCompared> out;
  const auto compare = [&](const BitsCheck& check, int64_t all) -> Status {
    ASSIGN_OR_RETURN(BitsCompared row, compare_results(device, check, a, all, threads));
    out.push_back(std::move(row));
    return Status();
  };
  for (a.op = 0; a.op < args::BITS_OPS; ++a.op)
    RETURN_IF_ERROR(compare({kOperations[a.op], elementary, 128, 128, 1, host_result}, cases));
  RETURN_IF_ERROR(
      compare({"sum of 64 lanes (N4)", sums, 64, 1, 1, host_sum}, std::max<int64_t>(1, some / 64)));
  RETURN_IF_ERROR(compare({"integer products (N20)", integers, 32, kProductBits, kProductBits, host_product},
                          std::max(kProductBits, some / kProductBits * kProductBits)));
  return out;
}

Status admit(gpu::Device& device) {
  ASSIGN_OR_RETURN(const std::vector<BitsCompared> rows, compare_bits(device, kAtStart, 1));
  for (const BitsCompared& row : rows)
    if (row.differ > 0)
      return unsupported(fmt::format(
          "{} ({}) does not compute as docs/spec/numerics.md says: {}: {} of {} cases differ, {}; it is not "
          "used. Please report the GPU, its driver and NVRTC's version; --device cpu works",
          device.memory().name(), device.limits().name, row.name, row.differ, row.cases, row.first));
  return Status();
}

}  // namespace ostro::cuda
