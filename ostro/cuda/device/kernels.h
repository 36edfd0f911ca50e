// Kernels: the embedded device text, loaded for a device file by file, when a kernel of the file is first
// asked for.
//
// Thread-safe. The device must outlive it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "ostro/cuda/device/device.h"

namespace ostro::cuda {

class Kernels {
 public:
  explicit Kernels(Device& device) : device_(device) {}

  Device& device() const { return device_; }
  // The kernel of this name in an embedded file ("routines/layout.cu"). Errors: those of Device::load and of
  // Code::kernel.
  Result<Kernel> find(const std::string& file, const std::string& kernel);

 private:
  Device& device_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Code>> codes_;
};

}  // namespace ostro::cuda
