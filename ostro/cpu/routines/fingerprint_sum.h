// FingerprintSum: adds up the fingerprint of an array part by part (docs/spec/numerics.md, N14).
//
// The sum does not depend on how the parts are cut. Several threads may add different parts, each to a sum of
// its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/kernels/fingerprint/kernels/fingerprint_kernels.h"
#include "ostro/numerics/fingerprint.h"

namespace ostro::cpu {

class FingerprintSum {
 public:
  // `in` is the operands of a fingerprint op: a dense array, then its origin along every axis. Borrows the
  // data. Error: the array is cut inside a word.
  static Result<FingerprintSum> make(std::span<const Array> in, const ir::Attrs& attrs, machine::Isa isa);

  // The number of rows. Neighbouring rows are joined to one when their words are numbered without a gap.
  int64_t rows() const { return rows_; }
  int64_t length() const { return length_; }
  int64_t element_bytes() const { return bytes_; }

  // Adds n elements of one row, from `start` on. `start` must begin a word; the end must end a word or the
  // row. Meanwhile it prefetches as many bytes at `ahead`; nullptr: the bytes that follow.
  void add(numerics::Fingerprint& sum, int64_t row, int64_t start, int64_t n,
           const char* ahead = nullptr) const;

 private:
  const char* data_ = nullptr;
  int64_t bytes_ = 1, rows_ = 0, length_ = 1, per_word_ = 1;
  uint64_t first_word_ = 0;                         // where the rows of this part begin
  uint64_t words_ = 0;                              // of a row of the whole array
  std::vector<int64_t> sizes_, origins_, globals_;  // of the axes that make the rows
  kernels::FingerprintWords add_words_ = nullptr;
};

}  // namespace ostro::cpu
