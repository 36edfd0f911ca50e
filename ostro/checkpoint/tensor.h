// TensorSpec, Tensor: a named tensor in a checkpoint: axes, element type, bytes, and the cells into which it
// is cut. This room does not depend on the meaning of the tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/base/sha256.h"
#include "ostro/io/arrays/box.h"

namespace ostro::checkpoint {

using io::Extents;

// The description of a tensor; validate() checks it.
struct TensorSpec {
  // "model/layers/mlp/up/weight"; each component consists of letters, digits, "_", "-", "."
  std::string path;
  std::string dtype;              // "f32", "bf16", "f64", "i32", "i64", "u32", "bool", "i8", as in the IR
  std::vector<std::string> axes;  // names, outermost first
  Extents shape;                  // one size per axis
  // extents of a cell, the unit of ownership and hashing (docs/spec/numerics.md, N8); empty: one cell
  Extents cell;
  bool operator==(const TensorSpec&) const = default;

  // "f32[layers:2, embed:64]".
  std::string type_str() const;
  int64_t bytes() const;
};

// A spec and row-major little-endian bytes. `owner`, when set, keeps the bytes alive and unchanged.
struct Tensor {
  TensorSpec spec;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// The Zarr name of a dtype, or nullptr if unknown. dtype_size: bytes per element, or 0 if unknown.
const char* zarr_dtype(std::string_view dtype);
int64_t dtype_size(std::string_view dtype);

// Checks that paths, ranks, sizes and dtypes are valid, and that no path is equal to or below another.
// `where` begins the error.
Status validate(std::span<const TensorSpec> specs, const std::string& where);

// The extents of a cell: spec.cell, or the whole shape if that is empty. Each is at least 1 and at most the
// size of its axis (1 for an axis of size 0).
Extents cell_extents(const TensorSpec& spec);
// The boxes of all cells in lexicographic order of their coordinates. The last cell along an axis may be
// smaller.
struct Box {
  Extents start, shape;
};
std::vector<Box> cells_of(const TensorSpec& spec);

// SHA-256 of each cell's dense row-major bytes, in the order of cells_of.
using CellHashes = std::vector<Sha256Digest>;
// The hash of an array: SHA-256 over the digests of its cells.
Sha256Digest array_hash(const CellHashes& cells);

// The name of a state: a SHA-256 in hexadecimal over one line per tensor in the given order, "<path>
// <type_str> <array hash in hexadecimal>\n".
std::string state_name(std::span<const TensorSpec> specs, std::span<const Sha256Digest> arrays);
// The name of a state, computed from the bytes. `threads` cells are hashed in parallel.
std::string state_name(std::span<const Tensor> tensors, int threads);

}  // namespace ostro::checkpoint
