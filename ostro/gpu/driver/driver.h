// Driver: NVIDIA's driver of this machine, opened at run time: its version, its GPUs, and the words for its
// errors.
//
// Thread-safe. It is opened once and stays so until the process ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/gpu/driver/abi.h"

namespace ostro::gpu {

// The properties of a GPU that the driver reports.
struct GpuFacts {
  int ordinal = 0;             // "cuda:0"
  std::string name;            // "NVIDIA H100 80GB HBM3"
  int compute_capability = 0;  // 90 is 9.0
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  int64_t block_shared_bytes = 0;  // the most shared memory of a block
};

// The oldest supported versions: CUDA 12.0, and the compute capability of Turing (the T4 and RTX 20).
inline constexpr int kOldestCuda = 12000;
inline constexpr int kOldestCapability = 75;

class Driver {
 public:
  // Opens libcuda.so.1, as the loader finds it, and initialises it. Errors: kUnsupported, with what to do:
  // there is no driver; it is too old, does not run, or has no GPU.
  static Result<const Driver*> open();

  const CudaSlots& slots() const { return slots_; }
  const std::string& path() const { return path_; }
  // The newest version of CUDA that it runs: 13000 is 13.0.
  int cuda_version() const { return cuda_version_; }
  // The version of the driver, "580.159.04", as the kernel's module shows it; empty when it does not.
  const std::string& version() const { return version_; }
  const std::vector<GpuFacts>& gpus() const { return gpus_; }

  // The free bytes of the GPU. It takes a context of the GPU for a moment. Errors: kBusy when another process
  // has the GPU exclusively; kDevice.
  Result<int64_t> free_memory(int ordinal) const;

  // The error for a value of CUresult that is not CUDA_SUCCESS. `doing` is what was tried ("cuda:0: launch of
  // X"). The text has the driver's name of the error, what it means for the user and what to do.
  Error error(int result, const std::string& doing) const;
  // Status() for CUDA_SUCCESS.
  Status check(int result, const std::string& doing) const;

 private:
  static Result<const Driver*> open_now();

  CudaSlots slots_;
  std::string path_, version_;
  int cuda_version_ = 0;
  std::vector<GpuFacts> gpus_;
};

// Returns true for an error after which this process cannot use the GPU any more: it is lost, or a kernel
// failed.
bool ends_the_device(int result);

// Checks that Ostro has kernels for the GPU. Error: kUnsupported when it is older than kOldestCapability.
Status check_capability(const GpuFacts& facts);

// "13.0" of 13000.
std::string cuda_text(int version);
// "9.0" of 90.
std::string capability_text(int capability);

}  // namespace ostro::gpu
