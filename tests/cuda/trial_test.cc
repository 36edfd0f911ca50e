// The trial of fast kernels: right ones are allowed; a family with a fault is left out and named, the others
// stay.
#include <doctest/doctest.h>

#include "ostro/base/log.h"
#include "ostro/cuda/admission/compare.h"
#include "ostro/cuda/text/device_text.h"
#include "ostro/cuda/trial/trial.h"
#include "ostro/gpu/emulated/emulated_device.h"

namespace ostro {
namespace {

// The outcome on an emulated device with this change of its text, and what was logged.
cuda::FastFamilies tried(const gpu::EmulationOptions& options, std::string& log) {
  auto device = gpu::emulated_device(options);
  REQUIRE_MESSAGE(device.ok(), device.error().message());
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { log += line; });
  const auto allowed = cuda::try_fast_kernels(**device);
  set_log_sink(before);
  REQUIRE_MESSAGE(allowed.ok(), allowed.error().message());
  return *allowed;
}

TEST_CASE("fast kernels with the bits of the plain ones are allowed, and nothing is said") {
  std::string log;
  CHECK(tried({.seed = 7}, log) == cuda::kAllFast);
  CHECK(log == "");
}

TEST_CASE(
    "control: a family with a fast kernel of other bits is left out and named, the others are allowed") {
  struct Fault {
    cuda::Fast family;
    gpu::EmulationOptions::Change change;
    const char* named;
  };
  const Fault faults[] = {
      {cuda::Fast::kProducts,
       {"chain = FMA32(left[i], right[j], chain);", "chain = left[i] * right[j] + chain;"},
       "fast kernels of products do not run here"},
      {cuda::Fast::kAttention,
       {"i64 open = p + 1;", "i64 open = p + 2;"},
       "fast kernels of attention do not run here"},
      {cuda::Fast::kIntegers,
       {"(u32)(number >> 2)", "(u32)(number >> 2) + 1"},
       "fast kernels of integer products do not run here"},
      {cuda::Fast::kReductions,
       {"at = (s0 + e) * 64 + THREAD", "at = (s0 + e / 2) * 64 + THREAD"},
       "fast kernels of reductions do not run here"},
      {cuda::Fast::kTensorRule,
       {"warp_n + j * 8 + lane / 4) * (TILE_ROW / 2) + word",
        "warp_n + j * 8 + lane / 8) * (TILE_ROW / 2) + word"},
       "fast kernels of tensor cores that sum bf16 by N23 do not run here"},
      {cuda::Fast::kWarpgroups,
       {"stage * STAGE_BYTES + half_of_rows * 64 * HALF", "stage * STAGE_BYTES"},
       "fast kernels of warpgroups do not run here"}};
  for (const Fault& fault : faults) {
    CAPTURE(std::string(fault.named));
    std::string log;
    cuda::FastFamilies expected = cuda::kAllFast;
    expected[static_cast<size_t>(fault.family)] = false;
    CHECK(tried({.seed = 7, .changes = {fault.change}}, log) == expected);
    CHECK_MESSAGE(log.find(fault.named) != std::string::npos, log);
    CHECK_MESSAGE(log.find("other bits than the plain ones have") != std::string::npos, log);
  }
}

TEST_CASE("the checks of arithmetic compare every result of every batch once, and say which differs first") {
  auto device = gpu::emulated_device();
  REQUIRE_MESSAGE(device.ok(), device.error().message());
  const std::string text = cuda::device_text(R"(KERNEL(numbers, BitsArgs) {
  const i64 i = global_thread();
  if (i < a.count) AT(u32, a.to)[i] = (u32)(a.first + (u64)i * a.step);
}
)");
  const auto code = (*device)->load("numbers", text);
  REQUIRE_MESSAGE(code.ok(), code.error().message());
  const auto kernel = (*code)->kernel("numbers");
  REQUIRE(kernel.ok());
  const auto compared = [&](uint32_t (*host)(const cuda::args::BitsArgs&, int64_t)) {
    cuda::args::BitsArgs a = {};
    a.step = 3;
    const auto out = cuda::compare_results(**device, {"numbers", *kernel, 64, 64, 1, host}, a, 1000, 2, 256);
    REQUIRE_MESSAGE(out.ok(), out.error().message());
    CHECK(out->cases == 1000);
    return *out;
  };
  const auto right = compared(&cuda::number_of);
  CHECK(right.differ == 0);
  CHECK(right.first == "");
  // Cases 300 and 999, in the second batch and at the end of the last.
  const auto wrong = compared([](const cuda::args::BitsArgs& a, int64_t i) {
    const uint32_t number = cuda::number_of(a, i);
    return number == 900 || number == 2997 ? number + 1 : number;
  });
  CHECK(wrong.differ == 2);
  CHECK(wrong.first == "case 300: 0x00000384, not 0x00000385");
}

TEST_CASE("control: tensor cores with another rule than N23's are not used for it") {
  // Denormal sums are flushed, in the instruction alone.
  std::string log;
  cuda::FastFamilies expected = cuda::kAllFast;
  expected[static_cast<size_t>(cuda::Fast::kTensorRule)] = false;
  const gpu::EmulationOptions::Change flushed{"c[r] = tensor_step(x, y, c[r]);",
                                              "c[r] = tensor_step(x, y, c[r]) + 0.0f;"};
  CHECK(tried({.seed = 7, .changes = {flushed}}, log) == expected);
  CHECK_MESSAGE(log.find("steps differ from the definition") != std::string::npos, log);
}

}  // namespace
}  // namespace ostro
