#include "ostro/io/arrays/zarr_parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

bool is_plain(const ZarrSpec& spec) {
  return !spec.sharded() && spec.compressor.kind == Compression::kNone && !spec.chunk_crc32c;
}

Error missing_chunk(const std::string& path) {
  return not_found(fmt::format("{} is missing: a file of the array beside it", path));
}

Error wrong_size(const std::string& path, int64_t size, int64_t wanted) {
  return corrupt(fmt::format("{}: {} bytes, a chunk of this array has {}", path, size, wanted));
}

// A box inside one chunk: where it begins there, and its extents.
struct InChunk {
  Extents start, shape;
};

// Reads the box, in runs that lie together in the file, into dense `out`.
Status read_runs(const RandomAccessFile& file, const ZarrSpec& spec, const InChunk& box,
                 std::span<std::byte> out) {
  const size_t rank = box.shape.size();
  size_t whole = rank;  // axes from here on are whole
  while (whole > 0 && box.shape[whole - 1] == spec.chunk[whole - 1]) --whole;
  // So is a range of the axis before them one run.
  const size_t outer = whole > 0 ? whole - 1 : 0;
  int64_t run = spec.item_size();
  for (size_t d = outer; d < rank; ++d) run *= box.shape[d];
  int64_t at = 0;
  return for_each_index(std::span(box.shape).first(outer), [&](const Extents& index) -> Status {
    int64_t element = 0;
    for (size_t d = 0; d < rank; ++d)
      element = element * spec.chunk[d] + box.start[d] + (d < outer ? index[d] : 0);
    const int64_t from = at;
    at += run;
    return file.read(element * spec.item_size(),
                     out.subspan(static_cast<size_t>(from), static_cast<size_t>(run)));
  });
}

}  // namespace

Status read_part(FileSystem& fs, const ZarrArray& array, const Extents& start, const Extents& shape,
                 std::span<std::byte> bytes, int64_t* bytes_read) {
  const ZarrSpec& spec = array.spec();
  *bytes_read += static_cast<int64_t>(bytes.size());
  if (!is_plain(spec)) return array.read_box(start, shape, bytes);
  const size_t rank = shape.size();
  Extents first(rank), count(rank);
  for (size_t d = 0; d < rank; ++d) {
    OSTRO_CHECK(start[d] >= 0 && shape[d] > 0 && start[d] + shape[d] <= spec.shape[d],
                "{}: box [{}, {}) of axis {} of {}", array.path(), start[d], start[d] + shape[d], d,
                spec.shape[d]);
    first[d] = start[d] / spec.chunk[d];
    count[d] = (start[d] + shape[d] - 1) / spec.chunk[d] - first[d] + 1;
  }
  Bytes part;
  return for_each_index(count, [&](const Extents& relative) -> Status {
    Extents index(rank), in_box(rank);
    InChunk box{Extents(rank), Extents(rank)};
    for (size_t d = 0; d < rank; ++d) {
      index[d] = first[d] + relative[d];
      const int64_t chunk_begin = index[d] * spec.chunk[d];
      const int64_t begin = std::max(chunk_begin, start[d]);
      box.start[d] = begin - chunk_begin;
      box.shape[d] = std::min(chunk_begin + spec.chunk[d], start[d] + shape[d]) - begin;
      in_box[d] = begin - start[d];
    }
    const std::string path = join_path(array.path(), spec.chunk_name(index));
    auto file = fs.open(path);
    if (!file.ok()) return file.error().code() == ErrorCode::kNotFound ? missing_chunk(path) : file.error();
    if ((*file)->size() != spec.chunk_bytes()) return wrong_size(path, (*file)->size(), spec.chunk_bytes());
    if (box.shape == shape) return read_runs(**file, spec, box, bytes);
    part.resize(static_cast<size_t>(product(box.shape) * spec.item_size()));
    RETURN_IF_ERROR(read_runs(**file, spec, box, part));
    copy_box(part, box.shape, Extents(rank, 0), bytes, shape, in_box, box.shape, spec.item_size());
    return {};
  });
}

Status check_files(FileSystem& fs, const ZarrArray& array) {
  const ZarrSpec& spec = array.spec();
  return for_each_index(grid_of(spec.shape, spec.file_chunk()), [&](const Extents& index) -> Status {
    const std::string path = join_path(array.path(), spec.chunk_name(index));
    const auto info = fs.stat(path);
    if (!info.ok()) return info.error().code() == ErrorCode::kNotFound ? missing_chunk(path) : info.error();
    if (is_plain(spec) && info->size != spec.chunk_bytes())
      return wrong_size(path, info->size, spec.chunk_bytes());
    return {};
  });
}

}  // namespace ostro::io
