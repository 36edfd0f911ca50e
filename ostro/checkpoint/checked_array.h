// open_checked_array, wrong_cell: checks that the readers of a checkpoint's arrays share.
#pragma once

#include <string>

#include "ostro/checkpoint/tensor.h"
#include "ostro/io/arrays/zarr.h"

namespace ostro::checkpoint {

// Opens the array of this tensor and checks its dtype, shape and dimension names against the manifest. Its
// chunks may have any shape. Errors: those of ZarrArray::open, and kCorrupt, with the array's path and the
// manifest's values.
Result<io::ZarrArray> open_checked_array(io::FileSystem& fs, const std::string& checkpoint,
                                         const TensorSpec& spec);
// The error for a cell whose bytes have another hash than the manifest's.
Error wrong_cell(const std::string& array_path, int64_t cell, const Box& box);

}  // namespace ostro::checkpoint
