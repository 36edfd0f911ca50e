#include "ostro/checkpoint/restore.h"

#include <fmt/format.h>
#include <algorithm>

#include "ostro/base/aligned.h"
#include "ostro/base/failpoint.h"
#include "ostro/base/log.h"
#include "ostro/base/parallel.h"
#include "ostro/checkpoint/checked_array.h"
#include "ostro/checkpoint/scratch.h"
#include "ostro/io/arrays/zarr.h"
#include "ostro/io/files/path.h"

namespace ostro::checkpoint {
namespace {

// The part of a cell that lies in the box, as starts in both and extents; false when there is none.
bool intersect(const Box& cell, const Box& box, Extents& in_cell, Extents& in_box, Extents& shape) {
  const size_t rank = cell.shape.size();
  in_cell.resize(rank);
  in_box.resize(rank);
  shape.resize(rank);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t begin = std::max(cell.start[d], box.start[d]);
    const int64_t end = std::min(cell.start[d] + cell.shape[d], box.start[d] + box.shape[d]);
    if (begin >= end) return false;
    in_cell[d] = begin - cell.start[d];
    in_box[d] = begin - box.start[d];
    shape[d] = end - begin;
  }
  return true;
}

// The outcome of one checkpoint: both ok, done; unfit, try an older one; final, return the error.
struct Attempt {
  Status unfit;
  Status final;
};

// Whether an error of Checkpoint::open is one for which no older checkpoint is taken.
bool is_of_later_version(const Error& error) { return error.code() == ErrorCode::kUnsupported; }

// Damage and a refusal by `checks` are unfit. A later format, an error of `place` and an error of the
// manifest check itself are final: an older checkpoint would not help, and falling back would lose steps.
Attempt restore_one(io::FileSystem& fs, const std::string& path, const Placement& place,
                    std::string_view pattern, int threads, const Checks& checks, Restored& out) {
  const auto unfit = [&](const char* how, const Error& error) {
    return Attempt{Error(error.code(), fmt::format("checkpoint {} is {} and is passed over: {}", path, how,
                                                   error.message())),
                   {}};
  };
  auto checkpoint = Checkpoint::open(fs, path);
  if (!checkpoint.ok()) {
    return is_of_later_version(checkpoint.error()) ? Attempt{{}, checkpoint.error()}
                                                   : unfit("damaged", checkpoint.error());
  }
  const Manifest& manifest = checkpoint->manifest();
  if (checks.manifest) {
    const Result<Status> verdict = checks.manifest(manifest, path);
    if (!verdict.ok()) return {{}, verdict.error()};
    if (!verdict->ok()) return unfit("refused", verdict->error());
  }
  for (const int64_t i : checkpoint->matching(pattern)) {
    const TensorSpec& spec = manifest.tensors[static_cast<size_t>(i)];
    auto memory = place(spec);
    if (!memory.ok()) return {{}, memory.error().with_context(path)};
    if (const Status status = checkpoint->read(i, *memory, threads); !status.ok())
      return unfit("damaged", status.error());
    failpoint("resume");
  }
  if (checks.tensors)
    if (const Status verdict = checks.tensors(manifest, path); !verdict.ok())
      return unfit("refused", verdict.error());
  out.path = path;
  out.manifest = manifest;
  return {};
}

Status check_array(const io::ZarrSpec& array, const TensorSpec& spec, const std::string& path) {
  if (array.dtype == zarr_dtype(spec.dtype) && array.shape == spec.shape &&
      array.dimension_names == spec.axes)
    return {};
  return corrupt(fmt::format("{}/zarr.json: dtype, shape or dimension_names differ from the manifest's {}",
                             path, spec.type_str()));
}

}  // namespace

Result<io::ZarrArray> open_checked_array(io::FileSystem& fs, const std::string& checkpoint,
                                         const TensorSpec& spec) {
  const std::string path = io::join_path(checkpoint, spec.path);
  ASSIGN_OR_RETURN(io::ZarrArray array, io::ZarrArray::open(fs, path));
  RETURN_IF_ERROR(check_array(array.spec(), spec, path));
  return array;
}

Error wrong_cell(const std::string& array_path, int64_t cell, const Box& box) {
  return corrupt(fmt::format("{}: the bytes of cell {} (from [{}]) do not have the SHA-256 of the manifest",
                             array_path, cell, fmt::join(box.start, ", ")));
}

Checkpoint::Checkpoint(io::FileSystem& fs, std::string path, Manifest manifest)
    : fs_(&fs), path_(std::move(path)), manifest_(std::move(manifest)) {}

Result<Checkpoint> Checkpoint::open(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(Manifest manifest, read_manifest(fs, path));
  return Checkpoint(fs, path, std::move(manifest));
}

int64_t Checkpoint::find(std::string_view tensor_path) const {
  for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
    if (manifest_.tensors[i].path == tensor_path) return static_cast<int64_t>(i);
  }
  return -1;
}

std::vector<int64_t> Checkpoint::matching(std::string_view pattern) const {
  std::vector<int64_t> out;
  for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
    if (io::glob_match(pattern, manifest_.tensors[i].path)) out.push_back(static_cast<int64_t>(i));
  }
  return out;
}

Status Checkpoint::read(int64_t tensor, std::span<std::byte> bytes, int threads) const {
  const TensorSpec& spec = manifest_.tensors.at(static_cast<size_t>(tensor));
  return read_box(tensor, Extents(spec.shape.size(), 0), spec.shape, bytes, threads);
}

Result<CellSource> Checkpoint::cells(int64_t tensor, CellsFrom from) const {
  const auto i = static_cast<size_t>(tensor);
  return CellSource::open(*fs_, path_, manifest_.tensors.at(i), manifest_.cells.at(i), *taken_, from);
}

Status Checkpoint::read_box(int64_t tensor, const Extents& start, const Extents& shape,
                            std::span<std::byte> bytes, int threads) const {
  ASSIGN_OR_RETURN(const CellSource all, cells(tensor));
  return read_box_from(all, tensor, start, shape, bytes, threads);
}

// Reads every cell that the box touches as a whole, because only whole cells have a hash; a cell whose
// elements follow each other in the box is read into place.
Status Checkpoint::read_box_from(const CellSource& all, int64_t tensor, const Extents& start,
                                 const Extents& shape, std::span<std::byte> bytes, int threads) const {
  const TensorSpec& spec = manifest_.tensors.at(static_cast<size_t>(tensor));
  const int64_t item = dtype_size(spec.dtype);
  OSTRO_CHECK(static_cast<int64_t>(bytes.size()) == io::product(shape) * item,
              "{}/{}: {} bytes for a box of {}", path_, spec.path, bytes.size(), io::product(shape) * item);
  const Box wanted{start, shape};
  return parallel_for(std::ssize(all.boxes()), threads, [&](int64_t c) -> Status {
    const Box& cell = all.boxes()[static_cast<size_t>(c)];
    Extents in_cell, in_box, part;
    if (!intersect(cell, wanted, in_cell, in_box, part)) return {};
    const auto cell_bytes = static_cast<size_t>(io::product(cell.shape) * item);
    const auto at = part == cell.shape ? io::contiguous_at(shape, in_box, part) : std::nullopt;
    AlignedBytes dense;
    std::span<std::byte> target;
    if (at) {
      target = bytes.subspan(static_cast<size_t>(*at * item), cell_bytes);
    } else {
      dense = allocate_aligned(cell_bytes);
      target = {dense.get(), cell_bytes};
    }
    RETURN_IF_ERROR(all.read(c, target));
    if (!at) io::copy_box(target, cell.shape, in_cell, bytes, shape, in_box, part, item);
    return {};
  });
}

Status Checkpoint::read_cells(int64_t tensor, const TakeCell& take, int threads) const {
  ASSIGN_OR_RETURN(const CellSource all, cells(tensor));
  const int64_t item = dtype_size(manifest_.tensors.at(static_cast<size_t>(tensor)).dtype);
  return parallel_for(std::ssize(all.boxes()), threads, [&](int64_t c) -> Status {
    const Box& cell = all.boxes()[static_cast<size_t>(c)];
    const auto cell_bytes = static_cast<size_t>(io::product(cell.shape) * item);
    const AlignedBytes dense = allocate_aligned(cell_bytes);
    const std::span bytes(dense.get(), cell_bytes);
    RETURN_IF_ERROR(all.read(c, bytes));
    take(cell, bytes);
    return {};
  });
}

// The check keeps what it needs by value: a region outlives the checkpoint.
Result<std::shared_ptr<io::LeasedRegion>> Checkpoint::map(int64_t tensor, int threads) const {
  const auto i = static_cast<size_t>(tensor);
  ASSIGN_OR_RETURN(const io::ZarrArray array, open_checked_array(*fs_, path_, manifest_.tensors.at(i)));
  const std::vector<Box> boxes = cells_of(manifest_.tensors.at(i));
  const io::ZarrSpec& spec = array.spec();
  const auto files = array.row_major_files();
  const auto is_whole = [&](const Box& cell) {
    return io::contiguous_at(spec.shape, cell.start, cell.shape).has_value();
  };
  if (!files || files->empty() || !std::all_of(boxes.begin(), boxes.end(), is_whole))
    return unsupported(fmt::format("{}: its files are not its elements in a row", array.path()));
  const auto check = [path = array.path(), shape = spec.shape, item = spec.item_size(), boxes,
                      hashes = manifest_.cells.at(i), threads](std::span<const std::byte> bytes) {
    return parallel_for(std::ssize(boxes), threads, [&](int64_t c) -> Status {
      const Box& cell = boxes[static_cast<size_t>(c)];
      const auto at = static_cast<size_t>(*io::contiguous_at(shape, cell.start, cell.shape) * item);
      const auto cell_bytes = static_cast<size_t>(io::product(cell.shape) * item);
      if (sha256(bytes.subspan(at, cell_bytes)) == hashes[static_cast<size_t>(c)]) return {};
      return wrong_cell(path, c, cell);
    });
  };
  ASSIGN_OR_RETURN(auto region, io::LeasedRegion::map(*fs_, *files, check));
  const int64_t wanted = io::product(spec.shape) * spec.item_size();
  if (std::ssize(region->bytes()) != wanted)
    return corrupt(fmt::format("{}: its files have {} bytes, its elements {}", array.path(),
                               region->bytes().size(), wanted));
  return region;
}

Status Checkpoint::verify(int threads) const {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
    const TensorSpec& spec = manifest_.tensors[i];
    bytes.resize(static_cast<size_t>(spec.bytes()));
    ASSIGN_OR_RETURN(const CellSource all, cells(static_cast<int64_t>(i), CellsFrom::kCheckpoint));
    RETURN_IF_ERROR(read_box_from(all, static_cast<int64_t>(i), Extents(spec.shape.size(), 0), spec.shape,
                                  bytes, threads));
  }
  return {};
}

void Checkpoint::log_sources() const {
  if (scratch_of(*fs_) == nullptr) return;
  log_info(fmt::format("{}: {} bytes of its arrays were read from {}, {} bytes from the store", path_,
                       taken_->from_scratch.load(), scratch_of(*fs_)->folder(),
                       taken_->from_checkpoint.load()));
}

Result<Status> damage_of(io::FileSystem& fs, const std::string& path, int threads) {
  const auto opened = Checkpoint::open(fs, path);
  const Status found = opened.ok() ? opened->verify(threads) : Status(opened.error());
  if (found.ok()) return found;
  // What a disk or a network file system cannot give now may be whole.
  const ErrorCode code = found.error().code();
  if (code != ErrorCode::kCorrupt && code != ErrorCode::kNotFound) return found.error();
  return found;
}

Result<Restored> restore_latest(io::FileSystem& fs, const std::string& root, const Placement& place,
                                std::string_view pattern, int threads, const Checks& checks) {
  ASSIGN_OR_RETURN(auto entries, list_checkpoints(fs, root));
  if (checks.before) std::erase_if(entries, [&](const Entry& e) { return e.step >= *checks.before; });
  if (entries.empty()) return not_found(fmt::format("{}: no checkpoint", root));
  std::reverse(entries.begin(), entries.end());
  Restored restored;
  for (const Entry& entry : entries) {
    const Attempt attempt = restore_one(fs, entry.path, place, pattern, threads, checks, restored);
    if (!attempt.final.ok()) return attempt.final.error();
    if (attempt.unfit.ok()) return restored;
    restored.passed_over.push_back(attempt.unfit.error().message());
    log_warning(attempt.unfit.error().message());
  }
  return corrupt(
      fmt::format("{}: none of the {} checkpoints can be used; the newest: {}. Restore one from a copy, "
                  "or move this folder away to begin again from the first step",
                  root, entries.size(), restored.passed_over.front()));
}

}  // namespace ostro::checkpoint
