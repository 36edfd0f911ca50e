// find_devices: lists the devices of this machine that can run programs: its processors, its GPUs, and what
// the GPUs lack.
//
// It looks at the machine at every call; any thread may call it. What is missing is in the result, not an
// error.
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
  std::vector<std::string> instruction_sets;  // those of the machine that have kernels, ascending
  std::string used;                           // the one that is used; empty when OSTRO_ISA is wrong
  int threads = 0;                            // the threads used (OSTRO_THREADS); 0 when that is wrong
  int64_t memory_bytes = 0, free_bytes = 0;   // 0: not known
};

struct GpuDevice {
  std::string device;              // "cuda:0"
  std::string name;                // "NVIDIA H100 80GB HBM3"
  std::string compute_capability;  // "9.0"
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  std::optional<int64_t> free_bytes;  // nothing: not known, see `missing`
  std::string missing;                // why it cannot be used, and what to do; empty: it can be used
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

// The device of a worker of this machine ("cpu", "cuda:1"), and how many of the workers have it.
struct WorkerDevice {
  std::string device;
  int64_t sharers = 1;
};
// Returns the devices of workers for which a user has named `names`. "cuda" takes the GPUs that can be used
// in turn, and so does "auto", but the processors where there is none, which is logged. Other names stay as
// they are. Nothing is opened but the driver. Errors: "cuda" where no GPU can be used; a word that names no
// device.
Result<std::vector<WorkerDevice>> devices_of_workers(const std::vector<std::string>& names);

// Compares the arithmetic of a GPU ("cuda:0") with that of the processors: `cases` cases of every operation
// (cuda/admission/admission.h). Errors: kInvalidArgument when `device` names no GPU; those of open_gpu and of
// the device.
Result<std::vector<cuda::BitsCompared>> check_device(const std::string& device, int64_t cases);

}  // namespace ostro::engines
