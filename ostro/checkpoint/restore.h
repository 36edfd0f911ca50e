// Checkpoint, restore_latest: reads a checkpoint, all of it or a part; every byte handed out is checked
// against the manifest.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/cell_source.h"
#include "ostro/checkpoint/manifest.h"
#include "ostro/io/files/file_system.h"
#include "ostro/io/files/leased_region.h"

namespace ostro::checkpoint {

// One checkpoint, opened. Thread-safe; refers to `fs`, which must outlive it. Where `fs` is a
// ScratchFileSystem, cells that it has kept on this machine are read from there.
class Checkpoint {
 public:
  // Reads and checks the manifest; arrays are opened when they are read.
  static Result<Checkpoint> open(io::FileSystem& fs, const std::string& path);

  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  // Position of the tensor in manifest().tensors, or -1.
  int64_t find(std::string_view tensor_path) const;
  // Positions of the tensors whose path matches the pattern (io::glob_match), in the manifest's order.
  std::vector<int64_t> matching(std::string_view pattern) const;

  // Fills `bytes` with a whole tensor, or the box [start, start + shape) of it. Every cell that is touched is
  // read whole and hashed; a mismatch is ErrorCode::kCorrupt and names array and cell. Chunks of any shape
  // are read.
  Status read(int64_t tensor, std::span<std::byte> bytes, int threads = 2) const;
  Status read_box(int64_t tensor, const Extents& start, const Extents& shape, std::span<std::byte> bytes,
                  int threads = 2) const;

  // Calls `take` with every cell of a tensor, which has been read and hashed; the bytes are dense, row-major,
  // and there only meanwhile. Several threads call it at a time. Memory: a cell for each thread.
  using TakeCell = std::function<void(const Box& cell, std::span<const std::byte> bytes)>;
  Status read_cells(int64_t tensor, const TakeCell& take, int threads = 2) const;

  // Maps a tensor's files and hashes its cells there (io/files/leased_region.h). kUnsupported where it has to
  // be read instead.
  Result<std::shared_ptr<io::LeasedRegion>> map(int64_t tensor, int threads = 2) const;

  // Reads and checks everything, where the checkpoint lies: nothing from scratch.
  Status verify(int threads = 2) const;

  // Logs how many bytes of cells came from scratch, and how many from the checkpoint. Says nothing where `fs`
  // keeps none.
  void log_sources() const;

 private:
  Checkpoint(io::FileSystem& fs, std::string path, Manifest manifest);
  Result<CellSource> cells(int64_t tensor, CellsFrom from = CellsFrom::kAnywhere) const;
  Status read_box_from(const CellSource& all, int64_t tensor, const Extents& start, const Extents& shape,
                       std::span<std::byte> bytes, int threads) const;

  io::FileSystem* fs_;
  std::string path_;
  Manifest manifest_;
  std::shared_ptr<CellsTaken> taken_ = std::make_shared<CellsTaken>();  // also of copies
};

// What is wrong with this checkpoint for good, so that an older one is taken: other bytes, or a file that is
// gone. OK: nothing, all of it was read. Errors: it was written by a later version, and an older checkpoint
// would only lose steps; those of reading (kIo), which another attempt may not meet.
Result<Status> damage_of(io::FileSystem& fs, const std::string& path, int threads = 2);

// Gives the memory for a tensor, of exactly its size, or an error that ends the restore (for instance: the
// model has another shape). May be called again for the same tensor when a damaged checkpoint is given up for
// an older one.
using Placement = std::function<Result<std::span<std::byte>>(const TensorSpec&)>;

// Checks of the caller that go beyond a checkpoint's own hashes; each may be left out.
struct Checks {
  // Called before arrays are read. An error of the Result ends the restore, one of the Status refuses this
  // checkpoint.
  std::function<Result<Status>(const Manifest&, const std::string& path)> manifest;
  // Called when all tensors are in memory. An error refuses this checkpoint.
  std::function<Status(const Manifest&, const std::string& path)> tensors;
  std::optional<int64_t> before = {};  // only checkpoints of earlier steps are tried
};

// The checkpoint that was restored.
struct Restored {
  std::string path;
  Manifest manifest;
  // The faults of newer checkpoints that were passed over; each was also logged as a warning.
  std::vector<std::string> passed_over;
};

// Restores the tensors that match `pattern` from the newest checkpoint that is whole and that `checks` do not
// refuse, falling back to older ones with a warning. ErrorCode::kNotFound when there is no checkpoint,
// kCorrupt when none can be used. An error of `place`, or a checkpoint written by a later version, is not
// damage: it is returned unchanged. Passes the failpoint "resume".
Result<Restored> restore_latest(io::FileSystem& fs, const std::string& root, const Placement& place,
                                std::string_view pattern = "**", int threads = 2, const Checks& checks = {});

}  // namespace ostro::checkpoint
