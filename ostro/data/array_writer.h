// Writes one array of a token store and keeps the checksums of its chunks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/data/ledger.h"
#include "ostro/io/zarr_1d.h"

namespace ostro::data {

// Elements of a chunk and of a file of an array. Tests use small ones.
struct ArrayLayout {
  int64_t chunk = 262'144;
  int64_t shard = 134'217'728;
};

// Checksums of a full chunk, or of the last one.
struct ChunkSum {
  Sha256Digest sha256{};
  uint32_t crc32c = 0;
  int64_t last = 0;  // its last element
  bool operator==(const ChunkSum&) const = default;
};
ChunkSum sum_chunk(std::span<const int64_t> elements);

// An array's entry in the ledger from the sums of all its chunks.
ArrayLedger array_ledger(ArrayId id, int64_t elements, int64_t chunk, std::span<const ChunkSum> sums);

// Not thread-safe. Refers to the file system, which must outlive it.
class ArrayWriter {
 public:
  // What a commit made durable. The checksum is of the elements behind the last full chunk, which resuming
  // reads back.
  struct Position {
    io::Zarr1dWriter::Position zarr;
    uint32_t tail_crc32c = 0;
    int64_t elements() const { return zarr.elements; }
    bool operator==(const Position&) const = default;
  };

  static Result<ArrayWriter> create(io::FileSystem& fs, const std::string& path, const ArrayLayout& layout);
  // Goes on from what a commit recorded, with the sums of the full chunks before it.
  static Result<ArrayWriter> resume(io::FileSystem& fs, const std::string& path, const Position& position,
                                    std::vector<ChunkSum> sums);

  Status append(std::span<const int64_t> values);
  int64_t elements() const { return writer_.elements(); }
  int64_t chunk() const { return writer_.spec().chunk[0]; }

  // Makes everything appended durable.
  Result<Position> commit();

  // Sums of the full chunks so far.
  const std::vector<ChunkSum>& full_chunks() const { return sums_; }
  // The same and, when it is not full, the last chunk's.
  std::vector<ChunkSum> all_chunks() const;

 private:
  explicit ArrayWriter(io::Zarr1dWriter writer) : writer_(std::move(writer)) {}

  io::Zarr1dWriter writer_;
  std::vector<ChunkSum> sums_;
  std::vector<int64_t> pending_;  // elements of the chunk being filled
};

}  // namespace ostro::data
