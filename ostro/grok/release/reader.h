// Release, TensorFile: read a directory in the layout of Grok-1's release: ckpt-0 with 770 files for the
// release itself.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ostro/grok/layout/leaves.h"
#include "ostro/io/files/file_system.h"

namespace ostro::grok {

// The value of an int8 weight times its scale.
enum class Dequantize {
  kExact,      // the f32 product
  kReference,  // that product rounded to bf16: what the release's program multiplies with
};

// One tensor, open. Elements are read from the file when asked for. Thread-safe.
class TensorFile {
 public:
  // Opens the file and reads its pickle. Errors: kNotFound; those of read_pickle; kInvalidArgument when
  // dtypes or shapes are not the leaf's.
  static Result<TensorFile> open(io::FileSystem& fs, const std::string& directory, const Leaf& leaf);

  const StoredTensor& stored() const { return stored_; }
  // A tensor is rows of its last extent. All leading extents count: an [8, 6144, 32768] has 49152 rows.
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

  // The bytes of the weight's rows [first, first + count) as they are stored.
  Status read_stored(int64_t first, int64_t count, std::span<std::byte> out) const;
  // All scales, as they are stored; nothing to read for a tensor without scales.
  Status read_scales(std::span<std::byte> out) const;
  // Rows [first, first + count) as f32; out has count * columns() elements.
  Status read_rows(int64_t first, int64_t count, Dequantize mode, std::span<float> out) const;

 private:
  TensorFile() = default;

  std::unique_ptr<io::RandomAccessFile> file_;
  StoredTensor stored_;
  int64_t rows_ = 0, columns_ = 0;
  int64_t rows_per_scale_ =
      0;  // of an int8 tensor: rows r and r' have the same scales when r / this is the same
};

// A directory of such files. `fs` must outlive it.
class Release {
 public:
  // Finds the files in `directory` or in its ckpt-0, and their shape in config.json or `config` (a file; ""
  // for none). Opens no tensor.
  static Result<Release> open(io::FileSystem& fs, const std::string& directory,
                              const std::string& config = "");

  const std::string& directory() const { return directory_; }
  const GrokShape& shape() const { return shape_; }
  // In the order of the files.
  const std::vector<Leaf>& leaves() const { return leaves_; }
  // The names of tensor files in the directory that the shape does not have. Errors of listing it.
  Result<std::vector<std::string>> other_files() const;
  // A part outside of layers (`layer` -1) or in one.
  const Leaf& leaf(Part part, int64_t layer = -1) const;
  Result<TensorFile> open_tensor(const Leaf& leaf) const { return TensorFile::open(*fs_, directory_, leaf); }

 private:
  io::FileSystem* fs_ = nullptr;
  std::string directory_;
  GrokShape shape_;
  std::vector<Leaf> leaves_;
};

}  // namespace ostro::grok
