// open_gpu: a GPU of this machine as a Device: libcuda runs it, NVRTC compiles for it.
#pragma once

#include "ostro/base/error.h"
#include "ostro/cuda/device/device.h"

namespace ostro::cuda {

// The device "cuda:`ordinal`". The first call opens it; it lives until the process ends. Thread-safe. Errors:
// kUnsupported, with what to do: no driver, or too old a one; no GPU of that number, or too old a one; no
// NVRTC that fits. kBusy: another process has it alone. kIo: the driver fails.
Result<Device*> open_gpu(int ordinal);

}  // namespace ostro::cuda
