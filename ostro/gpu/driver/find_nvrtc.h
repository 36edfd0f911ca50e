// nvrtc_candidates: the places where NVRTC, the compiler of device text, may lie on this machine.
//
// Thread-safe as long as the environment does not change.
#pragma once

#include <string>
#include <vector>

namespace ostro::gpu {

// Returns the paths of libraries that exist and the names that the loader may find, best first, none twice:
//
// - OSTRO_NVRTC, a file or a folder; when it is set, it is the only place;
// - the folder of the driver's library;
// - NVIDIA's wheels (nvidia-cuda-nvrtc, nvidia-cuda-nvrtc-cu12) beside the wheel of this program, in
//   VIRTUAL_ENV, CONDA_PREFIX, the environment of the `python3` on PATH, HOME/.local, /usr/local and /usr;
// - a toolkit: CUDA_HOME, CUDA_PATH, /usr/local/cuda, and the loader's own folders.
//
// `driver_path` is the file of libcuda; empty when there is none.
std::vector<std::string> nvrtc_candidates(const std::string& driver_path);

// The command that installs an NVRTC whose output a driver for CUDA `version` (13000 is 13.0) runs.
std::string nvrtc_command(int version);

}  // namespace ostro::gpu
