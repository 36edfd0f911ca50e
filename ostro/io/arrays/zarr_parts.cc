#include "ostro/io/arrays/zarr_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "ostro/base/aligned.h"
#include "ostro/base/parallel.h"
#include "ostro/io/files/direct_file.h"
#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

// Bytes that a thread reads before it takes the next job; large, because every job is a request to the disk.
constexpr size_t kBlockBytes = size_t{4} << 20;
// Shorter reads go through the page cache, which reads ahead; read directly, each would cost a block of the
// disk.
constexpr size_t kDirectFrom = size_t{64} << 10;

bool is_plain(const ZarrSpec& spec) { return !spec.sharded() && spec.plain_chunks(); }

Error missing_chunk(const std::string& path) {
  return not_found(fmt::format("{} is missing: a file of the array beside it", path));
}

Error wrong_size(const std::string& path, int64_t size, int64_t wanted) {
  return corrupt(fmt::format("{}: {} bytes, a chunk of this array has {}", path, size, wanted));
}

// What was hashed once may not be another file later. A write during the read shows, too: stat comes after
// it.
Status check_unchanged(FileSystem& fs, const std::string& path, const CheckedFiles& checked) {
  const auto before = checked.find(path);
  if (before == checked.end()) return {};
  const auto now = fs.stat(path);
  if (!now.ok()) return now.error().code() == ErrorCode::kNotFound ? missing_chunk(path) : now.error();
  if (*now == before->second) return {};
  return corrupt(
      fmt::format("{}: {} bytes, changed at {} ns since 1970; when its hash was checked it had {} bytes, "
                  "changed at {} ns; "
                  "put that file back or start again",
                  path, now->size, now->mtime_ns, before->second.size, before->second.mtime_ns));
}

// A contiguous range of a file, and the memory for it.
struct Run {
  int64_t offset = 0;
  std::span<std::byte> out;
  int64_t end() const { return offset + static_cast<int64_t>(out.size()); }
};

// Some ranges of one file; or, of an array whose chunks must be decoded, a whole part.
struct Job {
  std::string path;
  int64_t file_bytes = 0;
  std::vector<Run> runs = {};  // in the order of the file
  size_t bytes = 0;            // of these
  const PartRead* part = nullptr;
};

// The same for every chunk file that a part touches.
Status check_unchanged(FileSystem& fs, const PartRead& part, const CheckedFiles& checked) {
  const ZarrSpec& spec = part.array->spec();
  const Extents file = spec.file_chunk();
  Extents first(part.start), count(part.start);
  for (size_t d = 0; d < first.size(); ++d) {
    first[d] = part.start[d] / file[d];
    count[d] = (part.start[d] + part.shape[d] - 1) / file[d] - first[d] + 1;
  }
  return for_each_index(count, [&](const Extents& relative) -> Status {
    Extents index = first;
    for (size_t d = 0; d < index.size(); ++d) index[d] += relative[d];
    return check_unchanged(fs, join_path(part.array->path(), spec.chunk_name(index)), checked);
  });
}

// Adds a run to the last job, cut into blocks. A job that has kBlockBytes is followed by another one of the
// same file.
void add_run(std::vector<Job>& jobs, Run run) {
  while (!run.out.empty()) {
    if (jobs.back().bytes >= kBlockBytes) jobs.push_back({jobs.back().path, jobs.back().file_bytes});
    const size_t take = std::min(run.out.size(), kBlockBytes);
    jobs.back().runs.push_back({run.offset, run.out.first(take)});
    jobs.back().bytes += take;
    run = {run.offset + static_cast<int64_t>(take), run.out.subspan(take)};
  }
}

// Adds the runs of a box that begins at `start` of a chunk and at `to` of the part. The trailing axes that
// the box covers wholly, in the chunk and in the part, and a range of the axis before them are one run; every
// index of the axes before gives one.
void add_runs(const PartRead& part, const Extents& start, const Extents& shape, const Extents& to,
              std::vector<Job>& jobs) {
  const ZarrSpec& spec = part.array->spec();
  const size_t rank = shape.size();
  size_t whole = rank;  // axes from here on are whole in both
  while (whole > 0 && shape[whole - 1] == spec.chunk[whole - 1] && shape[whole - 1] == part.shape[whole - 1])
    --whole;
  const size_t outer = whole > 0 ? whole - 1 : 0;
  const int64_t item = spec.item_size(), run = item * product(std::span(shape).subspan(outer));
  check_ok(for_each_index(std::span(shape).first(outer), [&](const Extents& index) -> Status {
    int64_t from = 0, at = 0;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t i = d < outer ? index[d] : 0;
      from = from * spec.chunk[d] + start[d] + i;
      at = at * part.shape[d] + to[d] + i;
    }
    add_run(jobs,
            {from * item, part.bytes.subspan(static_cast<size_t>(at * item), static_cast<size_t>(run))});
    return {};
  }));
}

// Adds at least one job for each chunk file that the part touches.
void add_part(const PartRead& part, std::vector<Job>& jobs) {
  const ZarrSpec& spec = part.array->spec();
  const size_t rank = part.shape.size();
  Extents first(rank), count(rank);
  for (size_t d = 0; d < rank; ++d) {
    OSTRO_CHECK(part.start[d] >= 0 && part.shape[d] > 0 && part.start[d] + part.shape[d] <= spec.shape[d],
                "{}: box [{}, {}) of axis {} of {}", part.array->path(), part.start[d],
                part.start[d] + part.shape[d], d, spec.shape[d]);
    first[d] = part.start[d] / spec.chunk[d];
    count[d] = (part.start[d] + part.shape[d] - 1) / spec.chunk[d] - first[d] + 1;
  }
  check_ok(for_each_index(count, [&](const Extents& relative) -> Status {
    Extents index(rank), start(rank), shape(rank), to(rank);
    for (size_t d = 0; d < rank; ++d) {
      index[d] = first[d] + relative[d];
      const int64_t chunk_begin = index[d] * spec.chunk[d];
      const int64_t begin = std::max(chunk_begin, part.start[d]);
      start[d] = begin - chunk_begin;
      shape[d] = std::min(chunk_begin + spec.chunk[d], part.start[d] + part.shape[d]) - begin;
      to[d] = begin - part.start[d];
    }
    jobs.push_back({join_path(part.array->path(), spec.chunk_name(index)), spec.chunk_bytes()});
    add_runs(part, start, shape, to, jobs);
    return {};
  }));
}

// Reads runs that are adjacent in the file with one read, and copies each to its place.
Status read_together(const RandomAccessFile& file, std::span<const Run> runs) {
  const int64_t begin = runs.front().offset, bytes = runs.back().end() - begin;
  // The memory has the same offset in a block as the bytes in the file, so that a direct read needs no copy.
  const AlignedBytes memory = allocate_aligned(2 * kBlockBytes + static_cast<size_t>(kDirectBlock));
  std::byte* const at = memory.get() + begin % kDirectBlock;
  RETURN_IF_ERROR(file.read(begin, {at, static_cast<size_t>(bytes)}));
  for (const Run& run : runs) std::memcpy(run.out.data(), at + (run.offset - begin), run.out.size());
  return {};
}

// Groups the runs into stretches that are adjacent in the file, one read each. The file is opened past the
// page cache only if every stretch is long enough to be worth it.
Status do_job(FileSystem& fs, const Job& job) {
  if (job.part != nullptr)
    return job.part->array->read_box(job.part->start, job.part->shape, job.part->bytes);
  std::vector<size_t> ends;  // of the stretches, as indices into runs
  size_t shortest = SIZE_MAX, stretch = 0;
  for (size_t i = 0; i < job.runs.size(); ++i) {
    stretch += job.runs[i].out.size();
    if (i + 1 < job.runs.size() && job.runs[i + 1].offset == job.runs[i].end()) continue;
    ends.push_back(i + 1);
    shortest = std::min(shortest, stretch);
    stretch = 0;
  }
  auto file = shortest < kDirectFrom ? fs.open(job.path) : open_direct(fs, job.path);
  if (!file.ok()) return file.error().code() == ErrorCode::kNotFound ? missing_chunk(job.path) : file.error();
  if ((*file)->size() != job.file_bytes) return wrong_size(job.path, (*file)->size(), job.file_bytes);
  const std::span<const Run> runs(job.runs);
  for (size_t begin = 0; const size_t end : ends) {
    RETURN_IF_ERROR(end - begin > 1 ? read_together(**file, runs.subspan(begin, end - begin))
                                    : (*file)->read(runs[begin].offset, runs[begin].out));
    begin = end;
  }
  return {};
}

}  // namespace

Status read_parts(FileSystem& fs, std::span<const PartRead> parts, int threads, const CheckedFiles* checked) {
  std::vector<Job> jobs;
  for (const PartRead& part : parts) {
    if (is_plain(part.array->spec()))
      add_part(part, jobs);
    else
      jobs.push_back({.path = part.array->path(), .part = &part});
  }
  return parallel_for(static_cast<int64_t>(jobs.size()), threads, [&](int64_t i) -> Status {
    const Job& job = jobs[static_cast<size_t>(i)];
    RETURN_IF_ERROR(do_job(fs, job));
    if (checked == nullptr) return {};
    return job.part != nullptr ? check_unchanged(fs, *job.part, *checked)
                               : check_unchanged(fs, job.path, *checked);
  });
}

Result<CheckedFiles> check_files(FileSystem& fs, const ZarrArray& array) {
  const ZarrSpec& spec = array.spec();
  CheckedFiles out;
  RETURN_IF_ERROR(for_each_index(grid_of(spec.shape, spec.file_chunk()), [&](const Extents& index) -> Status {
    const std::string path = join_path(array.path(), spec.chunk_name(index));
    const auto info = fs.stat(path);
    if (!info.ok()) return info.error().code() == ErrorCode::kNotFound ? missing_chunk(path) : info.error();
    if (is_plain(spec) && info->size != spec.chunk_bytes())
      return wrong_size(path, info->size, spec.chunk_bytes());
    out[path] = *info;
    return {};
  }));
  return out;
}

}  // namespace ostro::io
