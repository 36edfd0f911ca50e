// begin_save, write_cells, finish_save: the parts of a save, for several processes that write one checkpoint
// together: one begins and finishes it, each writes some of the cells. save() does all of them in one
// process. Errors are those of the file system.
#pragma once

#include <string>
#include <vector>

#include "ostro/checkpoint/save.h"
#include "ostro/io/arrays/zarr.h"

namespace ostro::checkpoint {

// A cell of a tensor, inside an array in memory.
struct CellData {
  size_t tensor = 0, cell = 0;             // place among the tensors of the checkpoint, and in its cells_of()
  std::span<const std::byte> bytes;        // a dense row-major box of the tensor
  Extents shape, start;                    // extents of that box; where the cell begins in it
  std::shared_ptr<const void> owner = {};  // keeps the bytes alive and unchanged, when set
};

// The directory of a checkpoint of the step before it is complete. A `mark` that is not empty distinguishes
// attempts, so that a process that still writes for an earlier attempt does not touch the files of a later
// one. In an object store it is the directory of the checkpoint itself, which the manifest completes: a
// folder cannot be renamed there, and its objects are written once, so that another attempt can only write
// the same bytes.
std::string temporary_directory(io::FileSystem& fs, const std::string& root, int64_t step,
                                const std::string& mark = "");

// Removes the directories that earlier saves left, and makes groups and arrays in the directory `temporary`.
// In an object store the checkpoint of the step that is there goes first; but if it has the state that is to
// be saved (the chain's head is the same) and all of it can be read, it stays, and its cells may be put
// again.
Status begin_save(io::FileSystem& fs, const std::string& root, const std::string& temporary, const Info& info,
                  std::span<const TensorSpec> tensors, const SaveOptions& options = {});

// Opens an array that begin_save has made, to write its cells.
Result<io::ZarrArray> open_array_to_write(io::FileSystem& fs, const std::string& temporary,
                                          const TensorSpec& spec, const SaveOptions& options = {});

// Writes and hashes these cells of a save that this or another process has begun, then makes all that this
// process wrote durable. Returns their hashes in the same order. Passes the failpoint "array_write" at the
// first cell of each array.
Result<std::vector<Sha256Digest>> write_cells(io::FileSystem& fs, const std::string& temporary,
                                              std::span<const TensorSpec> tensors,
                                              std::span<const CellData> cells,
                                              const SaveOptions& options = {});

// Writes the manifest, which has every cell's hash but no name yet, and moves the checkpoint to its place.
// All cells must be durable. Passes the failpoint "manifest".
Result<Saved> finish_save(io::FileSystem& fs, const std::string& root, const std::string& temporary,
                          Manifest manifest);

}  // namespace ostro::checkpoint
