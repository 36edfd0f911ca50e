// What readers of a checkpoint's arrays check.
#pragma once

#include <string>

#include "ostro/checkpoint/tensor.h"
#include "ostro/io/arrays/zarr_spec.h"

namespace ostro::checkpoint {

// An array must be what the manifest says it is; how it is cut into chunks is its own business.
Status check_array(const io::ZarrSpec& array, const TensorSpec& spec, const std::string& path);
// The error about a cell whose bytes have another hash than the manifest's.
Error wrong_cell(const std::string& array_path, int64_t cell, const Box& box);

}  // namespace ostro::checkpoint
