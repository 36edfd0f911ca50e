#include "ostro/checkpoint/save.h"

#include "ostro/checkpoint/save_parts.h"

namespace ostro::checkpoint {
namespace {

int64_t smallest_factor(int64_t n) {
  for (int64_t f = 2; f * f <= n; ++f) {
    if (n % f == 0) return f;
  }
  return n;
}

}  // namespace

Extents chunk_of_cell(Extents cell, int64_t item_bytes, int64_t max_bytes) {
  for (int64_t& extent : cell) {
    while (extent > 1 && io::product(cell) * item_bytes > max_bytes) extent /= smallest_factor(extent);
  }
  return cell;
}

Result<Saved> save(io::FileSystem& fs, const std::string& root, const Info& info,
                   std::span<const Tensor> tensors, const SaveOptions& options) {
  Manifest manifest{.info = info};
  std::vector<CellData> cells;
  for (const Tensor& tensor : tensors) {
    const TensorSpec& spec = tensor.spec;
    if (static_cast<int64_t>(tensor.bytes.size()) != spec.bytes())
      return invalid_argument(fmt::format("{}: tensor {}: {} bytes given, {} need {}", root, spec.path,
                                          tensor.bytes.size(), spec.type_str(), spec.bytes()));
    manifest.tensors.push_back(spec);
  }
  const std::string temporary = temporary_directory(fs, root, info.step);
  RETURN_IF_ERROR(begin_save(fs, root, temporary, info, manifest.tensors, options));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const std::vector<Box> boxes = cells_of(tensors[t].spec);
    manifest.cells.emplace_back(boxes.size());
    for (size_t c = 0; c < boxes.size(); ++c)
      cells.push_back({t, c, tensors[t].bytes, tensors[t].spec.shape, boxes[c].start});
  }
  ASSIGN_OR_RETURN(const auto hashes, write_cells(fs, temporary, manifest.tensors, cells, options));
  for (size_t i = 0; i < cells.size(); ++i) manifest.cells[cells[i].tensor][cells[i].cell] = hashes[i];
  return finish_save(fs, root, temporary, std::move(manifest));
}

}  // namespace ostro::checkpoint
