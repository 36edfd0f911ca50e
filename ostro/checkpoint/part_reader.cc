#include "ostro/checkpoint/part_reader.h"

#include <fmt/format.h>

#include <mutex>

#include "ostro/base/parallel.h"
#include "ostro/checkpoint/check_array.h"
#include "ostro/checkpoint/save.h"
#include "ostro/io/arrays/zarr_parts.h"
#include "ostro/io/files/path.h"

namespace ostro::checkpoint {
namespace {

// Of a cell this much is in memory at a time.
constexpr int64_t kHashedAtOnce = int64_t{16} << 20;

}  // namespace

Result<PartReader> PartReader::open(io::FileSystem& fs, const Checkpoint& checkpoint,
                                    const std::vector<std::string>& paths) {
  PartReader out(fs);
  const Manifest& manifest = checkpoint.manifest();
  for (const std::string& path : paths) {
    const int64_t found = checkpoint.find(path);
    if (found < 0) return not_found(fmt::format("{} has no tensor {}", checkpoint.path(), path));
    const auto i = static_cast<size_t>(found);
    ASSIGN_OR_RETURN(io::ZarrArray array, io::ZarrArray::open(fs, io::join_path(checkpoint.path(), path)));
    RETURN_IF_ERROR(check_array(array.spec(), manifest.tensors[i], array.path()));
    out.arrays_.push_back({manifest.tensors[i], manifest.cells[i], std::move(array)});
  }
  return out;
}

int64_t PartReader::bytes() const {
  int64_t sum = 0;
  for (const Array& a : arrays_) sum += a.spec.bytes();
  return sum;
}

Status PartReader::check(int threads, const std::function<void(int64_t)>& progress) const {
  for (const Array& a : arrays_) RETURN_IF_ERROR(io::check_files(*fs_, a.array));
  std::mutex mutex;
  int64_t done = 0;
  const auto hashed = [&](int64_t bytes) {
    const std::lock_guard lock(mutex);
    done += bytes;
    if (progress) progress(done);
  };
  for (const Array& a : arrays_) {
    const std::vector<Box> cells = cells_of(a.spec);
    RETURN_IF_ERROR(parallel_for(static_cast<int64_t>(cells.size()), threads, [&](int64_t c) {
      return check_cell(a, static_cast<size_t>(c), cells[static_cast<size_t>(c)], hashed);
    }));
  }
  return {};
}

Status PartReader::check_cell(const Array& a, size_t cell, const Box& box,
                              const std::function<void(int64_t)>& hashed) const {
  const int64_t item = dtype_size(a.spec.dtype);
  // Pieces of a cell that follow one another in its row-major bytes.
  const Extents piece = chunk_of_cell(box.shape, item, kHashedAtOnce);
  Sha256 hash;
  std::vector<std::byte> bytes;
  int64_t not_counted = 0;
  RETURN_IF_ERROR(io::for_each_index(io::grid_of(box.shape, piece), [&](const Extents& index) -> Status {
    Box part{box.start, piece};
    for (size_t d = 0; d < index.size(); ++d) {
      part.start[d] += index[d] * piece[d];
      part.shape[d] = std::min(piece[d], box.start[d] + box.shape[d] - part.start[d]);
    }
    bytes.resize(static_cast<size_t>(io::product(part.shape) * item));
    RETURN_IF_ERROR(io::read_part(*fs_, a.array, part.start, part.shape, bytes, &not_counted));
    hash.update(std::span<const std::byte>(bytes));
    hashed(static_cast<int64_t>(bytes.size()));
    return {};
  }));
  if (hash.finish() == a.hashes[cell]) return {};
  return wrong_cell(a.array.path(), static_cast<int64_t>(cell), box);
}

Status PartReader::read(size_t tensor, const Extents& start, const Extents& shape,
                        std::span<std::byte> out) const {
  int64_t bytes = 0;
  const Status done = io::read_part(*fs_, arrays_[tensor].array, start, shape, out, &bytes);
  *bytes_read_ += bytes;
  return done;
}

}  // namespace ostro::checkpoint
