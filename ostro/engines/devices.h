// find_devices: what this machine has to run programs on: its processors, its GPUs, and what the latter lack.
//
// It looks at the machine at every call; any thread may call it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/cuda/admission/admission.h"

namespace ostro::engines {

struct CpuDevice {
  std::string name;                           // "AMD EPYC 9B45"
  std::vector<std::string> instruction_sets;  // that there are kernels for, ascending
  std::string used;                           // the one of them that is used; empty where OSTRO_ISA is wrong
  int threads = 0;                            // that are used (OSTRO_THREADS); 0 where that is wrong
  int64_t memory_bytes = 0, free_bytes = 0;   // 0: not known
};

struct GpuDevice {
  std::string device;              // "cuda:0"
  std::string name;                // "NVIDIA H100 80GB HBM3"
  std::string compute_capability;  // "9.0"
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  std::optional<int64_t> free_bytes;  // nothing: it could not be asked, see `missing`
  std::string missing;                // why it cannot be used, and what to do; empty: it can
};

struct Devices {
  CpuDevice cpu;
  std::vector<GpuDevice> gpus;
  std::string driver_path, driver_version;  // empty: there is none; the version where the driver shows it
  std::string cuda_version;          // the newest that the driver runs, "13.0"; empty: there is no driver
  std::string nvrtc_path;            // empty: none that fits
  std::string nvrtc_version;         // "13.0"
  std::vector<std::string> missing;  // what GPUs need and is not there, each with the command that brings it
};

Devices find_devices();

// Compares the arithmetic of a GPU ("cuda:0") with that of the processors: `cases` cases of every operation
// (cuda/admission/admission.h). Errors: kInvalidArgument: it names no GPU; of open_gpu; the device's.
Result<std::vector<cuda::BitsCompared>> check_device(const std::string& device, int64_t cases);

}  // namespace ostro::engines
