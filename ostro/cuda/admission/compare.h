// compare_results: compares what a kernel of an admission check computes with what the host computes, case by
// case.
//
// Results come from the device in batches, and several threads of the host compare each batch. Any thread may
// call it.
#pragma once

#include <cstdint>
#include <string>

#include "ostro/base/error.h"
#include "ostro/cuda/text/arguments_host.h"
#include "ostro/gpu/device/device.h"

namespace ostro::cuda {

using u32 = uint32_t;
#define DEVICE inline
#include "ostro/cuda/admission/mixed.cuh"
#undef DEVICE

// The result for one operation: how many cases were compared and how many differ, and the first that does
// ("case 17: 0x00800000, not 0x00000000").
struct BitsCompared {
  std::string name;
  int64_t cases = 0, differ = 0;
  std::string first;
};

// A kernel with the argument BitsArgs, and the same on the host. Result i of a launch is host(argument, i).
struct BitsCheck {
  std::string name;
  gpu::Kernel kernel;
  int threads = 0;          // of a block
  int64_t of_block = 0;     // results that a block makes
  int64_t of_operands = 0;  // neighbouring results whose operands have one number (BitsArgs::first)
  uint32_t (*host)(const args::BitsArgs& a, int64_t i) = nullptr;
};

inline constexpr int64_t kMostBits = int64_t{1} << 24;  // results that are on the device at a time
inline constexpr int64_t kProductBits = 16 * 8;         // results of a product of a warp

// The number that operands follow from, the i-th of a launch.
inline uint32_t number_of(const args::BitsArgs& a, int64_t i) {
  return static_cast<uint32_t>(a.first + static_cast<uint64_t>(i) * a.step);
}

// Compares results 0 to all - 1, in batches of `batch`, a multiple of of_block, with `threads` threads. `a`
// has the operation and the step. NaNs are equal: no clause promises their payload (numerics.md, N0). Errors:
// those of the device.
Result<BitsCompared> compare_results(gpu::Device& device, const BitsCheck& check, args::BitsArgs a,
                                     int64_t all, int threads, int64_t batch = kMostBits);

}  // namespace ostro::cuda
