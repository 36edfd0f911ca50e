// ArrayWriter: writes one array of a token store and keeps the checksums of its chunks.
//
// It takes integers or elements in their form on disk. What was appended before a commit survives a kill:
// resume() continues there. Errors are those of writing, and an integer that does not fit the type on disk.
// Not thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/io/arrays/zarr_1d.h"

namespace ostro::data {

// Elements in a chunk and in a shard file of an array. Tests use small numbers.
struct ArrayLayout {
  int64_t chunk = 262'144;
  int64_t shard = 134'217'728;
};

// Checksums of one chunk.
struct ChunkSum {
  Sha256Digest sha256{};  // of integers converted to int64, of other types as on disk
  uint32_t crc32c = 0;    // of the elements as on disk
  int64_t last = 0;       // its last element, for integers
  bool operator==(const ChunkSum&) const = default;
};
// The sums of a chunk. `bytes` are whole elements, in memory as on disk.
ChunkSum sum_chunk(ElementType type, std::span<const std::byte> bytes);

// The ledger entry of an array, from the sums of all its chunks.
ArrayLedger array_ledger(ArrayId id, ElementType type, int64_t elements, int64_t chunk,
                         std::span<const ChunkSum> sums);

// Not thread-safe. The file system must outlive it.
class ArrayWriter {
 public:
  // The state that a commit made durable. The checksum is of the elements after the last full chunk; resume()
  // reads these back.
  struct Position {
    io::Zarr1dWriter::Position zarr;
    uint32_t tail_crc32c = 0;
    int64_t elements() const { return zarr.elements; }
    bool operator==(const Position&) const = default;
  };

  static Result<ArrayWriter> create(io::FileSystem& fs, const std::string& path, const ArrayLayout& layout,
                                    ElementType type = ElementType::kInt64);
  // Continues after a commit. `sums` are those of the full chunks before it.
  static Result<ArrayWriter> resume(io::FileSystem& fs, const std::string& path, const Position& position,
                                    std::vector<ChunkSum> sums);

  // Appends integers, which must fit the type on disk.
  Status append(std::span<const int64_t> values);
  Status append(std::span<const uint32_t> values);
  // Appends elements that already have their form on disk.
  Status append_bytes(std::span<const std::byte> bytes);
  int64_t elements() const { return writer_.elements(); }
  int64_t chunk() const { return writer_.spec().chunk[0]; }
  ElementType type() const { return type_; }

  // Makes everything appended durable.
  Result<Position> commit();

  // Sums of the full chunks so far.
  const std::vector<ChunkSum>& full_chunks() const { return sums_; }
  // The same, plus the sum of the last chunk when it is not full.
  std::vector<ChunkSum> all_chunks() const;

 private:
  ArrayWriter(io::Zarr1dWriter writer, ElementType type) : writer_(std::move(writer)), type_(type) {}

  template <typename T>
  Status append_as_stored(std::span<const T> values);

  io::Zarr1dWriter writer_;
  ElementType type_;
  std::vector<ChunkSum> sums_;
  std::vector<std::byte> pending_;    // elements of the unfinished chunk
  std::vector<std::byte> converted_;  // kept between calls for its memory
  std::optional<Position> committed_;
};

}  // namespace ostro::data
