#include "ostro/grok/release/reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "ostro/io/files/path.h"
#include "ostro/numerics/bf16.h"

namespace ostro::grok {
namespace {

using numerics::Bf16;

// Elements that are converted at a time: a megabyte or less of bytes as they are stored.
constexpr int64_t kBlock = 1 << 18;

void dequantize(std::span<const int8_t> weights, std::span<const Bf16> scales, Dequantize mode,
                std::span<float> out) {
  for (size_t i = 0; i < weights.size(); ++i) {
    const float product = static_cast<float>(weights[i]) * to_f32(scales[i]);
    out[i] = mode == Dequantize::kReference ? numerics::round_to_bf16(product) : product;
  }
}

Result<std::string> find_files(io::FileSystem& fs, const std::string& directory) {
  const std::string inner = io::join_path(directory, "ckpt-0");
  ASSIGN_OR_RETURN(const bool here, fs.exists(io::join_path(directory, leaf_file(0))));
  if (here) return directory;
  const auto info = fs.stat(inner);
  if (info.ok() && info->is_directory) return inner;
  ASSIGN_OR_RETURN(const auto entries, fs.list(directory));
  const auto is_tensor = [](const io::DirEntry& entry) {
    return io::glob_match("tensor[0-9]*_000", entry.name);
  };
  if (std::none_of(entries.begin(), entries.end(), is_tensor))
    return not_found(
        fmt::format("{}: no files tensor00000_000 ... are here or in its ckpt-0; name the directory of "
                    "Grok-1's checkpoint",
                    directory));
  return directory;
}

}  // namespace

Result<TensorFile> TensorFile::open(io::FileSystem& fs, const std::string& directory, const Leaf& leaf) {
  TensorFile out;
  ASSIGN_OR_RETURN(out.file_, fs.open(io::join_path(directory, leaf.file)));
  ASSIGN_OR_RETURN(out.stored_, read_pickle(*out.file_));
  if (!out.stored_.same_kind(leaf.tensor))
    return invalid_argument(fmt::format("{}: holds {}; {} is {}. Is the directory of another shape or order?",
                                        out.file_->path(), describe(out.stored_), leaf_title(leaf),
                                        describe(leaf.tensor)));
  const StoredArray& weight = out.stored_.weight;
  out.columns_ = weight.shape.back();
  out.rows_ = weight.bytes / item_size(weight.dtype) / out.columns_;
  if (out.stored_.scales) {
    const StoredArray& scales = *out.stored_.scales;
    const int64_t scale_rows = scales.bytes / item_size(scales.dtype) / out.columns_;
    out.rows_per_scale_ = out.rows_ / scale_rows;
  }
  return out;
}

Status TensorFile::read_stored(int64_t first, int64_t count, std::span<std::byte> out) const {
  const int64_t row_bytes = columns_ * item_size(stored_.weight.dtype);
  OSTRO_CHECK(first >= 0 && count >= 0 && first + count <= rows_, "{}: rows {} to {} of {}", file_->path(),
              first, first + count, rows_);
  OSTRO_CHECK(static_cast<int64_t>(out.size()) == count * row_bytes, "{}: {} bytes for {} rows of {}",
              file_->path(), out.size(), count, row_bytes);
  return file_->read(stored_.weight.begin + first * row_bytes, out);
}

Status TensorFile::read_scales(std::span<std::byte> out) const {
  const int64_t bytes = stored_.scales ? stored_.scales->bytes : 0;
  OSTRO_CHECK(static_cast<int64_t>(out.size()) == bytes, "{}: {} bytes for {} of scales", file_->path(),
              out.size(), bytes);
  return stored_.scales ? file_->read(stored_.scales->begin, out) : Status();
}

// Converts blocks of rows. A block of an int8 tensor ends where its row of scales does, and the row is read
// once for all blocks that share it.
Status TensorFile::read_rows(int64_t first, int64_t count, Dequantize mode, std::span<float> out) const {
  OSTRO_CHECK(static_cast<int64_t>(out.size()) == count * columns_, "{}: {} elements for {} rows of {}",
              file_->path(), out.size(), count, columns_);
  const Dtype dtype = stored_.weight.dtype;
  if (dtype == Dtype::kF32) return read_stored(first, count, std::as_writable_bytes(out));
  const int64_t rows_at_once = std::max<int64_t>(1, kBlock / columns_);
  std::vector<std::byte> stored;
  std::vector<Bf16> scales;
  int64_t scale_row = -1;
  while (count > 0) {
    int64_t rows = std::min(count, rows_at_once);
    if (dtype == Dtype::kInt8) rows = std::min(rows, rows_per_scale_ - first % rows_per_scale_);
    const auto values = out.first(static_cast<size_t>(rows * columns_));
    stored.resize(values.size() * static_cast<size_t>(item_size(dtype)));
    RETURN_IF_ERROR(read_stored(first, rows, stored));
    if (dtype == Dtype::kBf16) {
      for (size_t i = 0; i < values.size(); ++i) {
        Bf16 x;
        std::memcpy(&x, stored.data() + i * sizeof(x), sizeof(x));
        values[i] = to_f32(x);
      }
    } else {
      if (scale_row != first / rows_per_scale_) {
        scale_row = first / rows_per_scale_;
        scales.resize(static_cast<size_t>(columns_));
        const auto bytes = std::as_writable_bytes(std::span(scales));
        RETURN_IF_ERROR(
            file_->read(stored_.scales->begin + scale_row * static_cast<int64_t>(bytes.size()), bytes));
      }
      for (int64_t row = 0; row < rows; ++row) {
        const auto at = static_cast<size_t>(row * columns_), n = static_cast<size_t>(columns_);
        dequantize({reinterpret_cast<const int8_t*>(stored.data()) + at, n}, scales, mode,
                   values.subspan(at, n));
      }
    }
    out = out.subspan(values.size());
    first += rows;
    count -= rows;
  }
  return {};
}

Result<Release> Release::open(io::FileSystem& fs, const std::string& directory, const std::string& config) {
  Release out;
  out.fs_ = &fs;
  ASSIGN_OR_RETURN(out.directory_, find_files(fs, directory));
  if (config.empty()) {
    ASSIGN_OR_RETURN(out.shape_, read_shape(fs, out.directory_));
  } else {
    ASSIGN_OR_RETURN(const std::string text, fs.read_file(config, 1 << 20));
    ASSIGN_OR_RETURN(out.shape_, shape_from_json(text, config));
  }
  out.leaves_ = make_leaves(out.shape_);
  return out;
}

Result<std::vector<std::string>> Release::other_files() const {
  std::set<std::string> known;
  for (const Leaf& leaf : leaves_) known.insert(leaf.file);
  ASSIGN_OR_RETURN(const auto entries, fs_->list(directory_));
  std::vector<std::string> others;
  for (const io::DirEntry& entry : entries)
    if (io::glob_match("tensor[0-9]*_[0-9]*", entry.name) && !known.contains(entry.name))
      others.push_back(entry.name);
  return others;
}

const Leaf& Release::leaf(Part part, int64_t layer) const {
  const auto found = std::find_if(leaves_.begin(), leaves_.end(),
                                  [&](const Leaf& leaf) { return leaf.part == part && leaf.layer == layer; });
  OSTRO_CHECK(found != leaves_.end(), "no part {} of layer {}", static_cast<int>(part), layer);
  return *found;
}

}  // namespace ostro::grok
