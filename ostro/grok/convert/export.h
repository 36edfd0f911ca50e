// export_release: writes a decoder's parameters as a directory in the layout of Grok-1's release.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ostro/grok/convert/model.h"
#include "ostro/io/files/file_system.h"

namespace ostro::grok {

struct ExportOptions {
  // Gives rows [first, first + count) of a parameter in one layer (-1 outside of layers) as f32, into `out`
  // of count * columns elements.
  std::function<Status(const Parameter&, int64_t layer, int64_t first, int64_t count, std::span<float> out)>
      read;
  // For a model whose matrices are int8: gives rows of a matrix or of its scales as they are stored (int8,
  // bf16). The files of int8 matrices then have the bytes of the release that was imported. Empty for other
  // models.
  std::function<Status(const Parameter&, int64_t layer, int64_t first, int64_t count,
                       std::span<std::byte> out)>
      read_stored;
  // Called with the bytes of the files that were written, and of all files.
  std::function<void(int64_t done, int64_t total)> progress;
};

// Makes `directory` and writes all files. Matrices become shape.matrices: int8 as quantize() makes it, bf16
// rounded, or f32 as it is; the others stay f32. A part of a matrix that has scales of its own is in memory
// at a time. Errors: those of options.read and read_stored, and of writing.
Status export_release(io::FileSystem& fs, const std::string& directory, const GrokShape& shape,
                      const ExportOptions& options);

}  // namespace ostro::grok
