// PartReader: reads parts of a checkpoint's tensors, again and again, with memory that does not grow with the
// checkpoint. Cells are hashed once, all together, not at every read.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ostro/checkpoint/restore.h"
#include "ostro/io/arrays/zarr_parts.h"

namespace ostro::checkpoint {

// Some tensors of one checkpoint. Thread-safe. `fs` must outlive it.
class PartReader {
 public:
  // Opens the arrays of the tensors with these paths. Errors: kNotFound and kCorrupt name tensor or file.
  static Result<PartReader> open(io::FileSystem& fs, const Checkpoint& checkpoint,
                                 const std::vector<std::string>& paths);

  const TensorSpec& spec(size_t tensor) const { return arrays_[tensor].spec; }
  int64_t bytes() const;  // of all these tensors

  // Looks for every file, then reads and hashes every cell. Errors name the file that is missing or short, or
  // the cell whose bytes are not those of the manifest. `progress` gets the number of bytes hashed so far; it
  // is called by one thread at a time. No other thread may read meanwhile.
  Status check(const std::function<void(int64_t done)>& progress) const;

  // A box [start, start + shape) of a tensor, and the memory for its elements, row-major.
  struct Part {
    size_t tensor = 0;
    Extents start, shape;
    std::span<std::byte> bytes;
  };
  // Reads these parts, without hashing them; eight reads at a time, which keep a disk busy. After check(), a
  // file that was changed since then is an error (kCorrupt) that names it.
  Status read(std::span<const Part> parts) const;
  // The bytes of all parts that read() has read.
  int64_t bytes_read() const { return *bytes_read_; }

 private:
  struct Array {
    TensorSpec spec;
    CellHashes hashes;
    io::ZarrArray array;
  };

  explicit PartReader(io::FileSystem& fs) : fs_(&fs) {}
  Status check_cell(const Array& array, size_t cell, const Box& box,
                    const std::function<void(int64_t)>& hashed) const;

  io::FileSystem* fs_;
  std::vector<Array> arrays_;
  std::unique_ptr<std::atomic<int64_t>> bytes_read_ = std::make_unique<std::atomic<int64_t>>(0);
  std::unique_ptr<io::CheckedFiles> checked_ = std::make_unique<io::CheckedFiles>();  // by check()
};

}  // namespace ostro::checkpoint
