#include "ostro/bundle/parts/file_sums.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <span>

#include "ostro/base/parallel.h"
#include "ostro/base/sha256.h"
#include "ostro/io/files/path.h"

namespace ostro::bundle {
namespace {

constexpr int64_t kPiece = 1 << 20;

Status add_files(io::FileSystem& fs, const std::string& directory, const std::string& below,
                 std::vector<std::string>& out, std::vector<std::string>* links) {
  ASSIGN_OR_RETURN(const std::vector<io::DirEntry> entries, fs.list(io::join_path(directory, below)));
  for (const io::DirEntry& entry : entries) {
    const std::string path = io::join_path(below, entry.name);
    if (!entry.is_directory)
      out.push_back(path);
    else if (!entry.is_link)
      RETURN_IF_ERROR(add_files(fs, directory, path, out, links));
    else if (links != nullptr)
      links->push_back(path);
    else
      return invalid_argument(fmt::format("{}: is a link to a directory; put the directory itself there",
                                          io::join_path(directory, path)));
  }
  return {};
}

// Calls use(bytes) for the file's pieces in order, up to `limit` bytes.
Status for_pieces_of(const io::RandomAccessFile& file, int64_t limit,
                     const std::function<Status(std::span<const std::byte>)>& use) {
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(limit, kPiece)));
  for (int64_t at = 0; at < limit;) {
    const std::span<std::byte> piece =
        std::span(buffer).first(static_cast<size_t>(std::min(kPiece, limit - at)));
    RETURN_IF_ERROR(file.read(at, piece));
    RETURN_IF_ERROR(use(piece));
    at += static_cast<int64_t>(piece.size());
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> files_below(io::FileSystem& fs, const std::string& directory,
                                             std::vector<std::string>* links) {
  std::vector<std::string> out;
  RETURN_IF_ERROR(add_files(fs, directory, "", out, links));
  std::sort(out.begin(), out.end());
  return out;
}

Result<FolderSize> size_below(io::FileSystem& fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, files_below(fs, directory));
  FolderSize out{static_cast<int64_t>(files.size()), 0};
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const io::FileInfo info, fs.stat(io::join_path(directory, file)));
    out.bytes += info.size;
  }
  return out;
}

std::map<std::string, Result<FileSum>> hash_files(io::FileSystem& fs, const std::string& directory,
                                                  const std::vector<std::string>& paths, int threads,
                                                  Progress& progress, const std::string& what) {
  std::vector<FileSum> sums(paths.size());
  std::vector<Status> states(paths.size());
  int64_t total = 0, done = 0;
  for (size_t i = 0; i < paths.size(); ++i)
    if (const auto info = fs.stat(io::join_path(directory, paths[i])); info.ok())
      total += sums[i].bytes = info->size;
  // The largest first, so that no thread is left alone with one at the end.
  std::vector<size_t> order(paths.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sums[a].bytes > sums[b].bytes; });
  std::mutex mutex;
  const auto hash_one = [&](size_t i) -> Status {
    ASSIGN_OR_RETURN(const auto file, fs.open(io::join_path(directory, paths[i])));
    Sha256 hash;
    RETURN_IF_ERROR(for_pieces_of(*file, file->size(), [&](std::span<const std::byte> piece) -> Status {
      hash.update(piece);
      const std::lock_guard lock(mutex);
      done += static_cast<int64_t>(piece.size());
      progress.show(what, total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total));
      return {};
    }));
    sums[i] = {file->size(), to_hex(hash.finish())};
    return {};
  };
  (void)parallel_for(static_cast<int64_t>(order.size()), threads, [&](int64_t k) -> Status {
    const size_t i = order[static_cast<size_t>(k)];
    states[i] = hash_one(i);
    return {};
  });
  progress.end();
  std::map<std::string, Result<FileSum>> out;
  for (size_t i = 0; i < paths.size(); ++i)
    out.emplace(paths[i], states[i].ok() ? Result<FileSum>(sums[i]) : Result<FileSum>(states[i].error()));
  return out;
}

Status copy_file(io::FileSystem& fs, const std::string& from, const std::string& to,
                 const std::function<void(int64_t)>& done, int64_t bytes) {
  ASSIGN_OR_RETURN(const auto source, fs.open(from));
  ASSIGN_OR_RETURN(const auto copy, fs.create(to));
  RETURN_IF_ERROR(for_pieces_of(*source, bytes < 0 ? source->size() : bytes,
                                [&](std::span<const std::byte> piece) -> Status {
                                  RETURN_IF_ERROR(copy->append(piece));
                                  done(static_cast<int64_t>(piece.size()));
                                  return {};
                                }));
  return copy->close();
}

}  // namespace ostro::bundle
