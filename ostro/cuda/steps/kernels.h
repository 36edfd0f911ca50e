// Kernels: the embedded device text, loaded for a device file by file, when a kernel of the file is first
// asked for.
//
// Some ops have two kernels: a plain one, and a fast one that takes only some shapes. Both give the same
// bits. Which families of fast kernels may run is decided before the first program is compiled
// (trial/trial.h). Thread-safe otherwise. The device must outlive it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "ostro/gpu/device/device.h"

namespace ostro::cuda {

// A family of fast kernels: those of a folder of device text, with the reductions all nests, those of
// tensor cores that have the rule of N23, and those of warpgroups (text/warpgroups.cuh), which go before
// others.
enum class Fast { kProducts, kAttention, kIntegers, kReductions, kTensorRule, kWarpgroups };
inline constexpr size_t kFamilies = 6;
using FastFamilies = std::array<bool, kFamilies>;  // by Fast: its kernels may run
inline constexpr FastFamilies kAllFast = {true, true, true, true, true, true};

class Kernels {
 public:
  // `width`: multiprocessors that work is shared out over; 0: those of the device. It changes no bit.
  explicit Kernels(gpu::Device& device, const FastFamilies& fast = kAllFast, int64_t width = 0)
      : device_(device), fast_(fast), width_(width > 0 ? width : device.limits().multiprocessors) {}

  int64_t width() const { return width_; }
  const FastFamilies& families() const { return fast_; }
  bool fast(Fast family) const { return fast_[static_cast<size_t>(family)]; }

  gpu::Device& device() const { return device_; }
  // The kernel of this name in an embedded file ("routines/layout.cu"). Errors: those of gpu::Device::load
  // and of gpu::Code::kernel.
  Result<gpu::Kernel> find(std::string_view file, std::string_view kernel);

 private:
  gpu::Device& device_;
  const FastFamilies fast_;
  const int64_t width_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const gpu::Code>, std::less<>> codes_;
  // Kernels that were asked for, by file and by name.
  std::map<std::string, std::map<std::string, gpu::Kernel, std::less<>>, std::less<>> found_;
};

}  // namespace ostro::cuda
