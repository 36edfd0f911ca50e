// Small parts of large arrays on disk, read again and again.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ostro/io/arrays/zarr.h"

namespace ostro::io {

// A box of an array, and where its elements go, dense and row-major.
struct PartRead {
  const ZarrArray* array = nullptr;
  Extents start, shape;
  std::span<std::byte> bytes;
};

// Reads boxes as ZarrArray::read_box does, and of chunks that are not compressed only the bytes that lie in a
// box, past the page cache (open_direct) where they are long enough; `threads` blocks at a time. A chunk file
// that is missing or has another size is an error here: ErrorCode::kNotFound or kCorrupt, with the file.
Status read_parts(FileSystem& fs, std::span<const PartRead> parts, int threads);

// Whether all chunk files are there and, where chunks are not compressed, have the size they must have; the
// error is that of the first one.
Status check_files(FileSystem& fs, const ZarrArray& array);

}  // namespace ostro::io
