#include "ostro/checkpoint/cell_source.h"

#include <utility>

#include "ostro/checkpoint/checked_array.h"
#include "ostro/checkpoint/save_parts.h"
#include "ostro/checkpoint/scratch.h"
#include "ostro/io/files/path.h"

namespace ostro::checkpoint {

CellSource::CellSource(io::FileSystem& fs, std::string checkpoint, const TensorSpec& spec,
                       const CellHashes& hashes, CellsTaken& taken)
    : fs_(&fs),
      checkpoint_(std::move(checkpoint)),
      spec_(&spec),
      hashes_(&hashes),
      taken_(&taken),
      boxes_(cells_of(spec)) {}

// In scratch arrays have no zarr.json: they are cut as this program cuts them. Where it cut them in another
// way once, files are not there, or give other hashes.
Result<CellSource> CellSource::open(io::FileSystem& fs, const std::string& checkpoint, const TensorSpec& spec,
                                    const CellHashes& hashes, CellsTaken& taken, CellsFrom from) {
  CellSource source(fs, checkpoint, spec, hashes, taken);
  ScratchFileSystem* scratch = from == CellsFrom::kCheckpoint ? nullptr : scratch_of(fs);
  if (scratch != nullptr) {
    source.local_ = &scratch->local();
    for (const std::string& folder : scratch->folders_of(checkpoint))
      if (auto array = open_array_to_write(scratch->local(), folder, spec); array.ok())
        source.scratch_.push_back(std::move(*array));
  }
  if (source.scratch_.empty()) RETURN_IF_ERROR(source.open_array());
  return source;
}

Status CellSource::open_array() const {
  const std::lock_guard guard(opened_->mutex);
  if (opened_->array) return {};
  ASSIGN_OR_RETURN(io::ZarrArray array, open_checked_array(*fs_, checkpoint_, *spec_));
  opened_->array.emplace(std::move(array));
  return {};
}

bool CellSource::is_whole(int64_t cell, std::span<const std::byte> bytes) const {
  return sha256(bytes) == (*hashes_)[static_cast<size_t>(cell)];
}

// A chunk that is not there would be read as zeros, so its file is looked for first.
bool CellSource::read_from_scratch(const io::ZarrArray& array, int64_t cell,
                                   std::span<std::byte> bytes) const {
  if (bytes.empty()) return is_whole(cell, bytes);
  const Box& box = boxes_[static_cast<size_t>(cell)];
  io::Extents first = box.start;
  for (size_t d = 0; d < first.size(); ++d) first[d] /= array.spec().chunk[d];
  const auto info = local_->stat(io::join_path(array.path(), array.spec().chunk_name(first)));
  if (!info.ok() || info->size != array.spec().chunk_bytes()) return false;
  return array.read_box(box.start, box.shape, bytes).ok() && is_whole(cell, bytes);
}

Status CellSource::read(int64_t cell, std::span<std::byte> bytes) const {
  for (const io::ZarrArray& array : scratch_)
    if (read_from_scratch(array, cell, bytes)) {
      taken_->from_scratch += std::ssize(bytes);
      return {};
    }
  if (!scratch_.empty()) RETURN_IF_ERROR(open_array());
  const Box& box = boxes_[static_cast<size_t>(cell)];
  RETURN_IF_ERROR(opened_->array->read_box(box.start, box.shape, bytes));
  if (!is_whole(cell, bytes)) return wrong_cell(opened_->array->path(), cell, box);
  taken_->from_checkpoint += std::ssize(bytes);
  return {};
}

}  // namespace ostro::checkpoint
