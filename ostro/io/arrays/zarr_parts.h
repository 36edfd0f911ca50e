// read_parts: reads many small boxes of large arrays on disk. Any thread may call.
#pragma once

#include <map>
#include <span>
#include <string>

#include "ostro/io/arrays/zarr.h"

namespace ostro::io {

// A box of an array, and the memory for its elements, dense and row-major. Owns nothing.
struct PartRead {
  const ZarrArray* array = nullptr;
  Extents start, shape;
  std::span<std::byte> bytes;
};

// What stat said of chunk files when check_files looked at them, by path.
using CheckedFiles = std::map<std::string, FileInfo>;

// Reads boxes as ZarrArray::read_box does, with `threads` reads at a time. Of chunks that are not compressed
// it reads only the bytes that lie in a box, past the page cache (open_direct) if they are long enough. A
// chunk file that is missing or has another size is an error here: ErrorCode::kNotFound or kCorrupt, with the
// file. So is one of `checked`, if that is given, which has another size or time of change than there.
Status read_parts(FileSystem& fs, std::span<const PartRead> parts, int threads,
                  const CheckedFiles* checked = nullptr);

// Checks that all chunk files exist and, where chunks are not compressed, have the right size. Returns the
// files, or the error of the first file that does not.
Result<CheckedFiles> check_files(FileSystem& fs, const ZarrArray& array);

}  // namespace ostro::io
