// save: writes a checkpoint. Errors are those of the file system.
#pragma once

#include <string>

#include "ostro/checkpoint/manifest.h"
#include "ostro/io/files/file_system.h"

namespace ostro::checkpoint {

struct SaveOptions {
  int threads = 2;                              // number of cells that are hashed and written in parallel
  int64_t max_chunk_bytes = int64_t{64} << 20;  // larger cells are split into several chunk files
};

// A checkpoint that was written.
struct Saved {
  std::string path;  // root/step-NNNNNNNN
  std::string name;  // name (hash) of the state
};

// Writes the tensors, in this order, as the checkpoint of info.step below `root`. Everything is written to a
// directory with a temporary name and synced; the manifest comes last. Then the directory is renamed. So
// after a crash at any moment either the old checkpoint of this step (if any) or the new one is there. Only
// one save per root may run at a time. Passes the failpoints "array_write" (once per array) and "manifest".
Result<Saved> save(io::FileSystem& fs, const std::string& root, const Info& info,
                   std::span<const Tensor> tensors, const SaveOptions& options = {});

// Returns the extents of the chunk files of a cell. The cell is divided until a chunk has at most max_bytes,
// if that is possible.
Extents chunk_of_cell(Extents cell, int64_t item_bytes, int64_t max_bytes);

}  // namespace ostro::checkpoint
