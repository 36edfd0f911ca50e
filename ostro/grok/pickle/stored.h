// StoredTensor, read_pickle: the content of one file of Grok-1's release, and the place of its elements in
// the file. A file is a pickle (protocol 4) of a NumPy array, or of an object of the release's class
// QuantizedWeight8bit with two arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/io/arrays/box.h"
#include "ostro/io/files/file_system.h"

namespace ostro::grok {

enum class Dtype { kF32, kBf16, kInt8 };

// Bytes of one element.
int64_t item_size(Dtype dtype);
// "f32", "bf16", "int8".
const char* dtype_name(Dtype dtype);

// A row-major, little-endian array inside a file.
struct StoredArray {
  Dtype dtype = Dtype::kF32;
  io::Extents shape;
  int64_t begin = 0, bytes = 0;  // where its elements are in the file

  bool operator==(const StoredArray&) const = default;
};

struct StoredTensor {
  StoredArray weight;
  std::optional<StoredArray> scales;  // of a QuantizedWeight8bit

  bool operator==(const StoredTensor&) const = default;
  // True if dtypes and shapes are the same, wherever the elements are.
  bool same_kind(const StoredTensor& other) const;
};

// The number of bytes that dtype and shape need; nothing when an extent is negative or the number overflows.
std::optional<int64_t> bytes_needed(Dtype dtype, const io::Extents& shape);

// "f32 [6144, 8]", "int8 [6144, 1024] with scales bf16 [1, 1024]".
std::string describe(const StoredTensor& tensor);

// Reads the pickle around the elements, never the elements themselves. Nothing in the file is executed: only
// the opcodes and globals of the release's files are known, and they can only make arrays. So memory is
// bounded by a constant, whatever the file contains. Errors name the file, the byte and the opcode:
// kUnsupported for pickles of anything else, kCorrupt for a file that is not a pickle, or ends too early or
// late.
Result<StoredTensor> read_pickle(const io::RandomAccessFile& file);

}  // namespace ostro::grok
