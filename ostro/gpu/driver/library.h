// open_cuda, open_nvrtc: open a shared library at run time and find the functions of a table of slots in it.
//
// A library that was opened stays so until the process ends. Thread-safe.
#pragma once

#include <string>

#include "ostro/base/error.h"
#include "ostro/gpu/driver/abi.h"

namespace ostro::gpu {

// An open library and the file that it came from.
template <typename Slots>
struct Library {
  std::string path;
  Slots slots;
};

// `name` is a path, or a name that the loader looks for (LD_LIBRARY_PATH and the system's folders). Errors:
// kNotFound, with the loader's message, when there is no such library or it needs one that is missing;
// kUnsupported, with the function that it lacks, when it is too old or another library.
Result<Library<CudaSlots>> open_cuda(const std::string& name);
Result<Library<NvrtcSlots>> open_nvrtc(const std::string& name);

}  // namespace ostro::gpu
