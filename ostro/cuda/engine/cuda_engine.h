// make_device_engine: the Engine of a device. Program -> passes -> Plan -> device text and launches. Its
// results have the same bits as the interpreter's (docs/spec/numerics.md).
//
// The Engine is thread-safe and may be destroyed before its Executables. An op without device text is an
// error of compile(), which names it: no op runs on the host instead. Errors of a launch may come from a
// later run, or from reading a result.
#pragma once

#include <memory>

#include "ostro/cuda/steps/kernels.h"
#include "ostro/runtime/engine.h"

namespace ostro::cuda {

struct DeviceEngineOptions {
  bool fuse = true;              // false: one kernel per op
  int64_t head_tile = 0;         // tokens of a tile of head and cross-entropy; 0: chosen, -1: all of a leaf
  FastFamilies fast = kAllFast;  // fast kernels that may run (device/kernels.h)
  int64_t width = 0;             // as of Kernels
};

std::unique_ptr<runtime::Engine> make_device_engine(gpu::Device& device,
                                                    const DeviceEngineOptions& options = {});

}  // namespace ostro::cuda
