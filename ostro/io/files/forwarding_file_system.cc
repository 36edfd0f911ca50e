#include "ostro/io/files/forwarding_file_system.h"

namespace ostro::io {

Result<std::unique_ptr<RandomAccessFile>> ForwardingFileSystem::open(const std::string& path) {
  RETURN_IF_ERROR(before(Operation::kOpen, path));
  ASSIGN_OR_RETURN(auto file, base_.open(path));
  return reading(std::move(file));
}

Result<std::unique_ptr<WritableFile>> ForwardingFileSystem::create(const std::string& path) {
  RETURN_IF_ERROR(before(Operation::kCreate, path));
  ASSIGN_OR_RETURN(auto file, base_.create(path));
  return writing(std::move(file), path);
}

Result<std::unique_ptr<WritableFile>> ForwardingFileSystem::open_append(const std::string& path) {
  RETURN_IF_ERROR(before(Operation::kOpenAppend, path));
  ASSIGN_OR_RETURN(auto file, base_.open_append(path));
  return writing(std::move(file), path);
}

Result<FileInfo> ForwardingFileSystem::stat(const std::string& path) {
  RETURN_IF_ERROR(before(Operation::kStat, path));
  return base_.stat(path);
}

Status ForwardingFileSystem::truncate(const std::string& path, int64_t size) {
  RETURN_IF_ERROR(before(Operation::kTruncate, path));
  return base_.truncate(path, size);
}

Status ForwardingFileSystem::rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(before(Operation::kRename, from));
  return base_.rename(from, to);
}

Status ForwardingFileSystem::remove(const std::string& path) {
  RETURN_IF_ERROR(before(Operation::kRemove, path));
  return base_.remove(path);
}

Result<std::vector<DirEntry>> ForwardingFileSystem::list(const std::string& path) {
  RETURN_IF_ERROR(before(Operation::kList, path));
  return base_.list(path);
}

Status ForwardingFileSystem::make_dirs(const std::string& path) {
  RETURN_IF_ERROR(before(Operation::kMakeDirs, path));
  return base_.make_dirs(path);
}

Status ForwardingFileSystem::sync_dir(const std::string& path) {
  RETURN_IF_ERROR(before(Operation::kSyncDir, path));
  return base_.sync_dir(path);
}

Status ForwardingFileSystem::sync_tree(const std::string& path) {
  RETURN_IF_ERROR(before(Operation::kSyncTree, path));
  return base_.sync_tree(path);
}

Result<std::unique_ptr<FileLock>> ForwardingFileSystem::lock(const std::string& path,
                                                             std::string_view owner) {
  RETURN_IF_ERROR(before(Operation::kLock, path));
  return base_.lock(path, owner);
}

}  // namespace ostro::io
