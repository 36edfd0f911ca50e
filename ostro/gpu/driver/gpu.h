// open_gpu: a GPU of this machine as a Device: libcuda runs it, NVRTC compiles for it.
#pragma once

#include "ostro/base/error.h"
#include "ostro/gpu/device/device.h"

namespace ostro::gpu {

// The device "cuda:`ordinal`". The first call opens it; it lives until the process ends. Thread-safe. Errors:
// kUnsupported, with what to do, when there is no driver, no GPU of that number or no NVRTC that fits, or one
// of them is too old; kBusy when another process has the GPU exclusively; kDevice when the driver fails.
Result<Device*> open_gpu(int ordinal);

}  // namespace ostro::gpu
