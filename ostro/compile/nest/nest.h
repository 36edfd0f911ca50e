// Nest: the loops of one generated kernel, decided but not written: which loops run, what each pass over a
// row computes, loads, saves and stores. An engine writes it as text of its language
// (cpu/text/write_kernel.h).
//
// It holds only what the text depends on. So two kernels with equal nests are one kernel, whatever values,
// axes and sizes of the program they come from. A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/ir/program/op.h"
#include "ostro/ir/program/shape.h"

namespace ostro::compile {

enum class NestKind {
  kFlat,    // every element for itself
  kRows,    // row by row; each pass goes over the elements of a row, and reductions end with a pass
  kSerial,  // sums over outer loops in the order of the elements (docs/spec/numerics.md, N5), in tiles of
            // elements
};

// The size of a loop that is cut into ranges for threads: the caller of the kernel says how far it runs.
inline constexpr int64_t kGivenSize = -1;

// The place from which an op of a nest reads an operand.
struct NestOperand {
  enum class From { kOp, kAccess, kLiteral };
  From from = From::kOp;
  int32_t index = 0;  // of Nest::ops, accesses or literals
  bool operator==(const NestOperand&) const = default;
};

struct NestOp {
  ir::OpKind kind = ir::OpKind::add;
  ir::DType dtype = ir::DType::f32;  // of the result
  std::vector<NestOperand> operands;
  bool row = false;    // kRows: one value a row, not one an element
  int32_t store = -1;  // the access that stores it, or -1
  int32_t saved =
      -1;  // kRows: the pass that saves it for later passes in an array of the row's length, or -1
  bool operator==(const NestOp&) const = default;
};

// A pointer that the kernel gets: loads first, then stores.
struct NestAccess {
  ir::DType dtype = ir::DType::f32;
  bool store = false;
  // In elements, by loop: the outer ones, the inner one, the summed ones. 0: it does not move.
  std::vector<int64_t> strides;
  bool operator==(const NestAccess&) const = default;
};

struct NestLiteral {
  ir::DType dtype = ir::DType::f32;
  uint64_t bits = 0;
  bool operator==(const NestLiteral&) const = default;
};

// One run over the elements of a row. Numbers of ops, ascending.
struct NestPass {
  std::vector<int32_t> row_ops;     // computed before the pass, once a row
  std::vector<int32_t> ops;         // each computed, or read again if an earlier pass saved it
  std::vector<int32_t> stores;      // those of `ops` that are stored
  std::vector<int32_t> reductions;  // their values exist after the pass
  bool operator==(const NestPass&) const = default;
};

struct Nest {
  NestKind kind = NestKind::kFlat;
  std::vector<int64_t> outer;    // sizes of the loops around a row; the first is given
  std::optional<int64_t> inner;  // size of the loop inside a row; given when there is no outer loop in kFlat
  std::vector<int64_t> summed;   // kSerial: sizes of the loops that are summed over
  int64_t tile = 0;              // kSerial: the most elements of the inner loop that are summed at a time
  std::vector<NestAccess> accesses;
  std::vector<NestLiteral> literals;
  std::vector<NestOp> ops;       // kSerial: the last one is the sum
  std::vector<NestPass> passes;  // kRows: the last one has row_ops alone; otherwise one
  bool operator==(const Nest&) const = default;

  // Elements of a row: 1 without an inner loop.
  int64_t row_size() const { return inner.value_or(1); }
  // The stride of an access in the inner loop, and in summed loop i.
  int64_t inner_stride(size_t access) const { return inner ? accesses[access].strides[outer.size()] : 0; }
  int64_t summed_stride(size_t access, size_t i) const {
    return accesses[access].strides[outer.size() + (inner ? 1 : 0) + i];
  }
  ir::DType dtype_of(const NestOperand& operand) const;

  // The same text for equal nests, different text for different ones; a line per loop list, access, literal,
  // op and pass.
  std::string str() const;
};

struct NestHash {
  size_t operator()(const Nest& nest) const { return std::hash<std::string>()(nest.str()); }
};

// sum, reduce_max or reduce_min: the ops that end a pass.
bool is_row_reduction(ir::OpKind kind);

}  // namespace ostro::compile
