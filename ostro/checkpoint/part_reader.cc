#include "ostro/checkpoint/part_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "ostro/base/aligned.h"
#include "ostro/base/parallel.h"
#include "ostro/checkpoint/checked_array.h"
#include "ostro/checkpoint/save.h"
#include "ostro/io/arrays/zarr_parts.h"

namespace ostro::checkpoint {
namespace {

// The bytes of a cell that are in memory at a time.
constexpr int64_t kHashedAtOnce = int64_t{4} << 20;
// Threads that hash; some of them wait for the disk.
constexpr int kHashThreads = 4;
// Reads that are under way at a time.
constexpr int kReadThreads = 8;

}  // namespace

Result<PartReader> PartReader::open(io::FileSystem& fs, const Checkpoint& checkpoint,
                                    const std::vector<std::string>& paths) {
  PartReader out(fs);
  const Manifest& manifest = checkpoint.manifest();
  for (const std::string& path : paths) {
    const int64_t found = checkpoint.find(path);
    if (found < 0) return not_found(fmt::format("{} has no tensor {}", checkpoint.path(), path));
    const auto i = static_cast<size_t>(found);
    ASSIGN_OR_RETURN(io::ZarrArray array, open_checked_array(fs, checkpoint.path(), manifest.tensors[i]));
    out.arrays_.push_back({manifest.tensors[i], manifest.cells[i], std::move(array)});
  }
  return out;
}

int64_t PartReader::bytes() const {
  int64_t sum = 0;
  for (const Array& a : arrays_) sum += a.spec.bytes();
  return sum;
}

Status PartReader::check(const std::function<void(int64_t)>& progress) const {
  for (const Array& a : arrays_) {
    ASSIGN_OR_RETURN(io::CheckedFiles files, io::check_files(*fs_, a.array));
    for (auto& [path, info] : files) checked_->insert_or_assign(path, info);
  }
  std::mutex mutex;
  int64_t done = 0;
  const auto hashed = [&](int64_t bytes) {
    const std::lock_guard lock(mutex);
    done += bytes;
    if (progress) progress(done);
  };
  struct Work {
    const Array* array;
    size_t cell;
    Box box;
  };
  std::vector<Work> all;
  for (const Array& a : arrays_) {
    std::vector<Box> boxes = cells_of(a.spec);
    for (size_t c = 0; c < boxes.size(); ++c) all.push_back({&a, c, std::move(boxes[c])});
  }
  // A cell is hashed by one thread: the largest must not be the last.
  std::stable_sort(all.begin(), all.end(), [](const Work& a, const Work& b) {
    return io::product(a.box.shape) > io::product(b.box.shape);
  });
  return parallel_for(static_cast<int64_t>(all.size()), kHashThreads, [&](int64_t i) {
    const Work& w = all[static_cast<size_t>(i)];
    return check_cell(*w.array, w.cell, w.box, hashed);
  });
}

// The hash is over the cell's row-major bytes, so the pieces must follow one another in them: chunk_of_cell()
// divides the first axes before the later ones.
Status PartReader::check_cell(const Array& a, size_t cell, const Box& box,
                              const std::function<void(int64_t)>& hashed) const {
  const int64_t item = dtype_size(a.spec.dtype);
  const Extents piece = chunk_of_cell(box.shape, item, kHashedAtOnce);
  Sha256 hash;
  const AlignedBytes memory = allocate_aligned(static_cast<size_t>(io::product(piece) * item));
  RETURN_IF_ERROR(io::for_each_index(io::grid_of(box.shape, piece), [&](const Extents& index) -> Status {
    Box part{box.start, piece};
    for (size_t d = 0; d < index.size(); ++d) {
      part.start[d] += index[d] * piece[d];
      part.shape[d] = std::min(piece[d], box.start[d] + box.shape[d] - part.start[d]);
    }
    const std::span<std::byte> bytes(memory.get(), static_cast<size_t>(io::product(part.shape) * item));
    const io::PartRead read{&a.array, part.start, part.shape, bytes};
    RETURN_IF_ERROR(io::read_parts(*fs_, {&read, 1}, 1, checked_.get()));
    hash.update(bytes);
    hashed(static_cast<int64_t>(bytes.size()));
    return {};
  }));
  if (hash.finish() == a.hashes[cell]) return {};
  return wrong_cell(a.array.path(), static_cast<int64_t>(cell), box);
}

Status PartReader::read(std::span<const Part> parts) const {
  std::vector<io::PartRead> reads;
  int64_t bytes = 0;
  for (const Part& part : parts) {
    reads.push_back({&arrays_[part.tensor].array, part.start, part.shape, part.bytes});
    bytes += static_cast<int64_t>(part.bytes.size());
  }
  *bytes_read_ += bytes;
  return io::read_parts(*fs_, reads, kReadThreads, checked_.get());
}

}  // namespace ostro::checkpoint
