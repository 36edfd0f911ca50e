// The trial of fast kernels: right ones are allowed; a family with a fault is left out and named, the others
// stay.
#include <doctest/doctest.h>

#include "ostro/base/log.h"
#include "ostro/cuda/emulated/emulated_device.h"
#include "ostro/cuda/trial/trial.h"

namespace ostro {
namespace {

// The outcome on an emulated device with this change of its text, and what was logged.
cuda::FastFamilies tried(const cuda::EmulationOptions& options, std::string& log) {
  auto device = cuda::emulated_device(options);
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
    cuda::EmulationOptions::Change change;
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
       "fast kernels of tensor cores that sum bf16 by N23 do not run here"}};
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

TEST_CASE("control: tensor cores with another rule than N23's are not used for it") {
  // Denormal sums are flushed, in the instruction alone.
  std::string log;
  cuda::FastFamilies expected = cuda::kAllFast;
  expected[static_cast<size_t>(cuda::Fast::kTensorRule)] = false;
  const cuda::EmulationOptions::Change flushed{"c[r] = tensor_step(x, y, c[r]);",
                                               "c[r] = tensor_step(x, y, c[r]) + 0.0f;"};
  CHECK(tried({.seed = 7, .changes = {flushed}}, log) == expected);
  CHECK_MESSAGE(log.find("steps differ from the definition") != std::string::npos, log);
}

}  // namespace
}  // namespace ostro
