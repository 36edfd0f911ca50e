// Chunks: arrays of a leaf program, cut into pieces. The pieces of a chunk are sent together, and chunks in
// the order in which the program first reads its parameters, or makes its gradients. So a chunk can be on its
// way while the program works on others. ChunkProgress: how many of the first chunks are complete.
//
// The order follows from the program before it is partitioned and compiled, so it is the same for all
// workers. Values and pure functions; there are no errors.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::fleet {

// Array k, or one index of its leading axis: one layer of a stacked parameter.
struct ArrayPiece {
  size_t k = 0;
  int64_t row = -1;  // -1: all of it
  bool operator==(const ArrayPiece&) const = default;
};

class Chunks {
 public:
  // When a program comes to a piece: the number of its op, and of the iteration if the op is a loop that
  // takes or makes the array index by index.
  struct Moment {
    size_t op = 0;
    int64_t iteration = 0;
    auto operator<=>(const Moment&) const = default;
  };

  // One chunk of `arrays` whole arrays.
  static Chunks of_whole(size_t arrays);
  // Array k is parameter params[k] of the program. Arrays that a loop reads index by index are cut, where
  // by_row[k] allows it.
  static Chunks read_by(const ir::Program& program, const std::vector<size_t>& params,
                        const std::vector<bool>& by_row);
  // Array k is result results[k] of the program.
  static Chunks made_by(const ir::Program& program, const std::vector<size_t>& results,
                        const std::vector<bool>& by_row);

  size_t size() const { return list_.size(); }
  const std::vector<ArrayPiece>& operator[](size_t i) const { return list_[i]; }
  // When the program comes to chunk i; behind the last op: pieces that no op reads or makes.
  Moment when(size_t i) const { return when_[i]; }
  // The number of pieces that array k is cut into.
  int64_t rows(size_t k) const { return static_cast<int64_t>(chunk_of_[k].size()); }
  // The number of the chunk with that row of array k; row 0 of an array that is whole.
  size_t chunk_of(size_t k, int64_t row) const { return chunk_of_[k][static_cast<size_t>(row)]; }
  // The number of chunks up to the last one that has some of the bytes [begin, end) of array k, which has
  // `bytes` bytes.
  size_t through(size_t k, int64_t begin, int64_t end, int64_t bytes) const;

 private:
  class Builder;
  std::vector<std::vector<ArrayPiece>> list_;
  std::vector<Moment> when_;                   // by chunk
  std::vector<std::vector<size_t>> chunk_of_;  // by array and row
};

class ChunkProgress {
 public:
  // `chunks` must outlive it.
  explicit ChunkProgress(const Chunks& chunks);
  // The bytes [begin, end) of array k, which has `bytes` bytes, are there. A piece counts when one call has
  // all of it.
  void add(size_t k, int64_t begin, int64_t end, int64_t bytes);
  // The number of chunks, from the first, that are complete.
  size_t complete() const { return complete_; }

 private:
  const Chunks& chunks_;
  std::vector<size_t> missing_;           // by chunk: pieces
  std::vector<std::vector<bool>> there_;  // by array and row
  size_t complete_ = 0;
};

}  // namespace ostro::fleet
