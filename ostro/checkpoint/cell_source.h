// CellSource: the cells of one tensor of a checkpoint: from scratch (scratch.h), where a cell is there whole,
// else from the checkpoint itself.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ostro/checkpoint/tensor.h"
#include "ostro/io/arrays/zarr.h"
#include "ostro/io/files/file_system.h"

namespace ostro::checkpoint {

// How many bytes of cells were read, and from where.
struct CellsTaken {
  std::atomic<int64_t> from_scratch{0}, from_checkpoint{0};
};

// Where cells may be read.
enum class CellsFrom { kAnywhere, kCheckpoint };

// Thread-safe. What it refers to must outlive it.
class CellSource {
 public:
  // Opens the array of the checkpoint, unless scratch may have cells of it: then it is opened when one is
  // wanted that is not there. Errors, here or later: those of open_checked_array.
  static Result<CellSource> open(io::FileSystem& fs, const std::string& checkpoint, const TensorSpec& spec,
                                 const CellHashes& hashes, CellsTaken& taken,
                                 CellsFrom from = CellsFrom::kAnywhere);

  const std::vector<Box>& boxes() const { return boxes_; }  // of the cells
  // Reads a cell, dense and row-major, and hashes it. kCorrupt, with array and cell, when the checkpoint has
  // another hash there than its manifest.
  Status read(int64_t cell, std::span<std::byte> bytes) const;

 private:
  struct Opened {
    std::mutex mutex;
    std::optional<io::ZarrArray> array;
  };

  CellSource(io::FileSystem& fs, std::string checkpoint, const TensorSpec& spec, const CellHashes& hashes,
             CellsTaken& taken);
  Status open_array() const;
  bool read_from_scratch(const io::ZarrArray& array, int64_t cell, std::span<std::byte> bytes) const;
  bool is_whole(int64_t cell, std::span<const std::byte> bytes) const;

  io::FileSystem* fs_;
  std::string checkpoint_;
  const TensorSpec* spec_;
  const CellHashes* hashes_;
  CellsTaken* taken_;
  std::vector<Box> boxes_;
  io::FileSystem* local_ = nullptr;
  std::vector<io::ZarrArray> scratch_;  // one of each process that may have cells there
  std::unique_ptr<Opened> opened_ = std::make_unique<Opened>();
};

}  // namespace ostro::checkpoint
