// Writing a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "ostro/checkpoint/manifest.h"
#include "ostro/io/files/file_system.h"

namespace ostro::checkpoint {

struct SaveOptions {
  int threads = 2;                              // cells hashed and written at a time
  int64_t max_chunk_bytes = int64_t{64} << 20;  // cells above this are split further into files
};

struct Saved {
  std::string path;  // root/step-NNNNNNNN
  std::string name;  // of the state
};

// Writes the tensors, in this order, as the checkpoint of info.step below `root`: into a directory with a
// temporary name, all of it synced, the manifest last, then one rename. Until that the step's older
// checkpoint (if any) counts; a crash at any moment leaves the old or the new one. One save per root at a
// time. Passes the failpoints "array_write" (once per array) and "manifest".
Result<Saved> save(io::FileSystem& fs, const std::string& root, const Info& info,
                   std::span<const Tensor> tensors, const SaveOptions& options = {});

// The extents of chunk files for a cell: the cell, divided until a chunk has at most max_bytes (where it can
// be).
Extents chunk_of_cell(Extents cell, int64_t item_bytes, int64_t max_bytes);

}  // namespace ostro::checkpoint
