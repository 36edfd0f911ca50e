// device_text: the text of kernels, complete for gpu::Device::load: the language (head.cu), types and
// functions of the numerics, the arguments that host and device share, and one or more files of kernels.
//
// Fixed text and pure functions; any thread may call them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ostro/compile/text/dialect.h"

namespace ostro::cuda {

// A file of device text, by its path in this room: "routines/layout.cu".
struct DeviceFile {
  std::string_view name, text;
};
std::span<const DeviceFile> device_files();

// The dialect of device text. Its head is the language in which all device text is written, also for the
// emulated device.
const compile::Dialect& cuda_dialect();

// Returns a complete text: the part with which every text begins, then `kernels`.
std::string device_text(std::string_view kernels);
// The same for an embedded file; other embedded files that it includes in its first lines take their place
// there. Aborts when there is none of this name.
std::string device_file_text(std::string_view name);

}  // namespace ostro::cuda
