#include "ostro/grok/convert/import.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "ostro/checkpoint/save_parts.h"
#include "ostro/numerics/arrays.h"
#include "ostro/numerics/bf16.h"

namespace ostro::grok {
namespace {

// Reads rows of one parameter in one layer.
class RowReader {
 public:
  static Result<RowReader> open(const Release& release, const Parameter& parameter, int64_t layer) {
    RowReader out(parameter);
    for (const Part part : parameter.parts) {
      ASSIGN_OR_RETURN(TensorFile file,
                       release.open_tensor(release.leaf(part, parameter.in_layers ? layer : -1)));
      out.files_.push_back(std::move(file));
    }
    return out;
  }

  // Rows [first, first + count), into `out` of count * columns elements: as f32, or as they are stored (int8,
  // and bf16 scales).
  template <typename T>
  Status read(int64_t first, int64_t count, std::span<T> out) const {
    // The parameter's columns may be cut into rows otherwise than the tensor's: they are the same elements.
    if (files_.size() == 1) return read_rows(files_[0], first, count, out);
    int64_t before = 0;  // columns of a block that earlier tensors take
    const int64_t block = parameter_.columns / parameter_.blocks;
    std::vector<T> part;
    for (const TensorFile& file : files_) {
      const int64_t width = file.columns() / parameter_.blocks;
      part.resize(static_cast<size_t>(count * file.columns()));
      RETURN_IF_ERROR(read_rows(file, first, count, std::span<T>(part)));
      for (int64_t i = 0; i < count * parameter_.blocks; ++i)
        std::memcpy(out.data() + i * block + before, part.data() + i * width,
                    static_cast<size_t>(width) * sizeof(T));
      before += width;
    }
    return {};
  }

 private:
  explicit RowReader(const Parameter& parameter) : parameter_(parameter) {}

  static Status read_rows(const TensorFile& file, int64_t first, int64_t count, std::span<float> out) {
    return file.read_rows(first, count, Dequantize::kExact, out);
  }
  static Status read_rows(const TensorFile& file, int64_t first, int64_t count, std::span<int8_t> out) {
    return file.read_stored(first, count, std::as_writable_bytes(out));
  }
  // Of scales, of which a tensor has few.
  static Status read_rows(const TensorFile& file, int64_t first, int64_t count,
                          std::span<numerics::Bf16> out) {
    std::vector<numerics::Bf16> all(static_cast<size_t>(file.stored().scales->bytes) / sizeof(out[0]));
    RETURN_IF_ERROR(file.read_scales(std::as_writable_bytes(std::span(all))));
    std::copy_n(all.begin() + first * file.columns(), count * file.columns(), out.begin());
    return {};
  }

  const Parameter& parameter_;
  std::vector<TensorFile> files_;
};

// The row of its layer at which a cell begins.
int64_t first_row(const Parameter& p, const checkpoint::Box& box) {
  int64_t element = 0;
  for (size_t i = p.in_layers ? 1 : 0; i < p.spec.shape.size(); ++i)
    element = element * p.spec.shape[i] + box.start[i];
  return element / p.columns;
}

// The cell's elements, as they are held.
Status read_cell(const Release& release, const Parameter& p, const checkpoint::Box& box,
                 const ImportOptions& options, std::vector<std::byte>& bytes) {
  const int64_t layer = p.in_layers ? options.layers.first + box.start[0] : -1;
  ASSIGN_OR_RETURN(const RowReader reader, RowReader::open(release, p, layer));
  const int64_t count = io::product(box.shape), first = first_row(p, box);
  bytes.resize(static_cast<size_t>(count * checkpoint::dtype_size(p.spec.dtype)));
  if (p.spec.dtype == "i8")
    return reader.read(first, count / p.columns,
                       std::span(reinterpret_cast<int8_t*>(bytes.data()), bytes.size()));
  if (p.content == Content::kScales) {
    std::vector<numerics::Bf16> scales(static_cast<size_t>(count));
    RETURN_IF_ERROR(reader.read(first, count / p.columns, std::span(scales)));
    for (size_t i = 0; i < scales.size(); ++i)  // an int8 weight is at most 128 scales
      if (const float scale = to_f32(scales[i]); !std::isfinite(128 * scale))
        return corrupt(fmt::format(
            "{}: {}{}: scale {} is {}, of which no weight is finite; run `ostro check "
            "--grok DIR --contents` for details",
            release.directory(), p.spec.path, layer < 0 ? "" : fmt::format(", layer {}", layer), i, scale));
    std::memcpy(bytes.data(), scales.data(), bytes.size());
    return {};
  }
  std::vector<float> values(static_cast<size_t>(count));
  RETURN_IF_ERROR(reader.read(first, count / p.columns, std::span(values)));
  if (const auto bad = numerics::first_from(values))
    return corrupt(
        fmt::format("{}: {}{}: an element of row {} is infinite or NaN; run `ostro check grok` for details",
                    release.directory(), p.spec.path, layer < 0 ? "" : fmt::format(", layer {}", layer),
                    first + static_cast<int64_t>(*bad) / p.columns));
  if (p.spec.dtype == "f32") {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return {};
  }
  numerics::narrow(values, bytes);
  return {};
}

// Cells that are written together: every write makes all that was written durable, which takes its time.
class Batch {
 public:
  Batch(io::FileSystem& fs, std::string temporary, checkpoint::Manifest& manifest)
      : fs_(fs), temporary_(std::move(temporary)), manifest_(manifest) {}

  Status add(checkpoint::CellData cell) {
    bytes_ += static_cast<int64_t>(cell.bytes.size());
    cells_.push_back(std::move(cell));
    return bytes_ < kBatchBytes ? Status() : write();
  }
  Status write() {
    ASSIGN_OR_RETURN(const auto hashes, checkpoint::write_cells(fs_, temporary_, manifest_.tensors, cells_));
    for (size_t i = 0; i < cells_.size(); ++i) manifest_.cells[cells_[i].tensor][cells_[i].cell] = hashes[i];
    cells_.clear();
    bytes_ = 0;
    return {};
  }

 private:
  static constexpr int64_t kBatchBytes = int64_t{256} << 20;

  io::FileSystem& fs_;
  std::string temporary_;
  checkpoint::Manifest& manifest_;
  std::vector<checkpoint::CellData> cells_;
  int64_t bytes_ = 0;
};

}  // namespace

Status check_import(const Release& release, const ImportOptions& options) {
  const LayerRange& layers = options.layers;
  if (layers.first < 0 || layers.count() < 1 || layers.last > release.shape().layers)
    return invalid_argument(
        fmt::format("layers {}:{}: {} has layers 0 to {}; use first:end, the end not included", layers.first,
                    layers.last, release.directory(), release.shape().layers - 1));
  if (options.held == Held::kInt8 && release.shape().matrices != Dtype::kInt8)
    return invalid_argument(fmt::format("dtype int8: {} has its matrices in {}; use f32 or bf16",
                                        release.directory(), dtype_name(release.shape().matrices)));
  ASSIGN_OR_RETURN(const std::vector<std::string> others, release.other_files());
  if (!others.empty())
    return invalid_argument(fmt::format(
        "{}: {} tensor files that {} has no place for, the first is {}; files are numbered in the order of "
        "names, so with another number of layers they hold other tensors. Mend num_hidden_layers of "
        "config.json, or move the files away",
        release.directory(), others.size(), shape_title(release.shape()), others[0]));
  for (const Leaf& leaf : release.leaves()) {
    if (leaf.layer >= 0 && (leaf.layer < layers.first || leaf.layer >= layers.last)) continue;
    if (const auto file = release.open_tensor(leaf); !file.ok())
      return file.error().with_context(leaf_title(leaf));
  }
  return {};
}

Result<checkpoint::Saved> import_release(io::FileSystem& fs, const Release& release, const std::string& root,
                                         const checkpoint::Info& info, const ImportOptions& options) {
  RETURN_IF_ERROR(check_import(release, options));
  const std::vector<Parameter> all = parameters(release.shape(), options.layers, options.held);
  checkpoint::Manifest manifest{.info = info};
  int64_t done = 0, total = 0;
  for (const Parameter& p : all) {
    manifest.tensors.push_back(p.spec);
    total += p.spec.bytes();
  }
  const std::string temporary = checkpoint::temporary_directory(fs, root, info.step);
  RETURN_IF_ERROR(checkpoint::begin_save(fs, root, temporary, info, manifest.tensors));
  Batch batch(fs, temporary, manifest);
  for (size_t t = 0; t < all.size(); ++t) {
    const std::vector<checkpoint::Box> boxes = checkpoint::cells_of(all[t].spec);
    manifest.cells.emplace_back(boxes.size());
    for (size_t c = 0; c < boxes.size(); ++c) {
      auto bytes = std::make_shared<std::vector<std::byte>>();
      RETURN_IF_ERROR(read_cell(release, all[t], boxes[c], options, *bytes));
      done += static_cast<int64_t>(bytes->size());
      RETURN_IF_ERROR(batch.add({t, c, *bytes, boxes[c].shape, boxes[c].start, bytes}));
      if (options.progress) options.progress(done, total);
    }
  }
  RETURN_IF_ERROR(batch.write());
  return checkpoint::finish_save(fs, root, temporary, std::move(manifest));
}

}  // namespace ostro::grok
