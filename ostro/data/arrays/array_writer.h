// Writes one array of a token store and keeps the checksums of its chunks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/io/arrays/zarr_1d.h"

namespace ostro::data {

// Elements of a chunk and of a file of an array. Tests use small ones.
struct ArrayLayout {
  int64_t chunk = 262'144;
  int64_t shard = 134'217'728;
};

// Checksums of a full chunk, or of the last one.
struct ChunkSum {
  Sha256Digest sha256{};  // of integers as int64 whatever their type on disk, of others as they are
  uint32_t crc32c = 0;    // of the elements as they are on disk
  int64_t last = 0;       // its last element, when they are integers
  bool operator==(const ChunkSum&) const = default;
};
// `bytes`: whole elements, in memory as on disk.
ChunkSum sum_chunk(ElementType type, std::span<const std::byte> bytes);

// An array's entry in the ledger from the sums of all its chunks.
ArrayLedger array_ledger(ArrayId id, ElementType type, int64_t elements, int64_t chunk,
                         std::span<const ChunkSum> sums);

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

  static Result<ArrayWriter> create(io::FileSystem& fs, const std::string& path, const ArrayLayout& layout,
                                    ElementType type = ElementType::kInt64);
  // Goes on from what a commit recorded, with the sums of the full chunks before it.
  static Result<ArrayWriter> resume(io::FileSystem& fs, const std::string& path, const Position& position,
                                    std::vector<ChunkSum> sums);

  // Appends integers, which must fit the type on disk.
  Status append(std::span<const int64_t> values);
  Status append(std::span<const uint32_t> values);
  // Appends elements that are as they shall be on disk.
  Status append_bytes(std::span<const std::byte> bytes);
  int64_t elements() const { return writer_.elements(); }
  int64_t chunk() const { return writer_.spec().chunk[0]; }
  ElementType type() const { return type_; }

  // Makes everything appended durable.
  Result<Position> commit();

  // Sums of the full chunks so far.
  const std::vector<ChunkSum>& full_chunks() const { return sums_; }
  // The same and, when it is not full, the last chunk's.
  std::vector<ChunkSum> all_chunks() const;

 private:
  ArrayWriter(io::Zarr1dWriter writer, ElementType type) : writer_(std::move(writer)), type_(type) {}

  template <typename T>
  Status append_as_stored(std::span<const T> values);

  io::Zarr1dWriter writer_;
  ElementType type_;
  std::vector<ChunkSum> sums_;
  std::vector<std::byte> pending_;    // elements of the chunk being filled
  std::vector<std::byte> converted_;  // kept between calls for its memory
  std::optional<Position> committed_;
};

}  // namespace ostro::data
