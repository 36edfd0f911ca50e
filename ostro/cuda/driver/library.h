// open_library: opens a shared library at run time and finds the functions of a table of slots in it.
//
// A library that was opened stays so until the process ends. Thread-safe.
#pragma once

#include <string>

#include "ostro/base/error.h"
#include "ostro/cuda/driver/abi.h"

namespace ostro::cuda {

// An open library and the file that it came from.
template <typename Slots>
struct Library {
  std::string path;
  Slots slots;
};

// `name` is a path, or a name that the loader looks for (LD_LIBRARY_PATH and the system's folders). Errors:
// kNotFound: there is no such library, or it needs one that is missing (the loader's words); kUnsupported: it
// is too old, or another library: the function that it lacks.
Result<Library<CudaSlots>> open_cuda(const std::string& name);
Result<Library<NvrtcSlots>> open_nvrtc(const std::string& name);

}  // namespace ostro::cuda
