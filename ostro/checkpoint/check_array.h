// check_array, open_checked_array, wrong_cell: checks that the readers of a checkpoint's arrays share.
#pragma once

#include <string>

#include "ostro/checkpoint/tensor.h"
#include "ostro/io/arrays/zarr.h"

namespace ostro::checkpoint {

// Checks an array's dtype, shape and dimension names against the manifest. Its chunks may have any shape.
// Error: kCorrupt, with `path` and both values.
Status check_array(const io::ZarrSpec& array, const TensorSpec& spec, const std::string& path);
// Opens the array of this tensor and checks it so. Errors: also those of ZarrArray::open.
Result<io::ZarrArray> open_checked_array(io::FileSystem& fs, const std::string& checkpoint,
                                         const TensorSpec& spec);
// The error for a cell whose bytes have another hash than the manifest's.
Error wrong_cell(const std::string& array_path, int64_t cell, const Box& box);

}  // namespace ostro::checkpoint
