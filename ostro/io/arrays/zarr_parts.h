// Small parts of large arrays on disk, read again and again.
#pragma once

#include <functional>
#include <string>

#include "ostro/io/arrays/zarr.h"

namespace ostro::io {

// Reads a box as ZarrArray::read_box does, and of chunks that are not compressed only the bytes that lie in
// the box. A chunk file that is missing or has another size is an error here: ErrorCode::kNotFound or
// kCorrupt, with the file. Adds the bytes that were read from files to *bytes_read.
Status read_part(FileSystem& fs, const ZarrArray& array, const Extents& start, const Extents& shape,
                 std::span<std::byte> bytes, int64_t* bytes_read);

// Whether all chunk files are there and, where chunks are not compressed, have the size they must have; the
// error is that of the first one.
Status check_files(FileSystem& fs, const ZarrArray& array);

}  // namespace ostro::io
