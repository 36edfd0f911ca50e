#include "ostro/io/files/atomic_file.h"

#include "ostro/io/files/path.h"

namespace ostro::io {

std::string temporary_path(const std::string& path) { return path + ".tmp"; }

Status write_file_atomically(FileSystem& fs, const std::string& path,
                             const std::function<Status(WritableFile&)>& write) {
  if (fs.is_object_store(path)) {  // there a file appears as a whole
    ASSIGN_OR_RETURN(const auto file, fs.create(path));
    RETURN_IF_ERROR(write(*file));
    return file->close();
  }
  const std::string temporary = temporary_path(path);
  const auto attempt = [&]() -> Status {
    ASSIGN_OR_RETURN(const auto file, fs.create(temporary));
    RETURN_IF_ERROR(write(*file));
    RETURN_IF_ERROR(file->sync());
    RETURN_IF_ERROR(file->close());
    return fs.rename(temporary, path);
  };
  if (Status status = attempt(); !status.ok()) {
    // Errors here are ignored: the first error is the one to report, and a left-over temporary file is
    // harmless.
    static_cast<void>(fs.remove(temporary));
    return status;
  }
  return fs.sync_dir(parent_path(path));
}

Status write_file_atomically(FileSystem& fs, const std::string& path, std::string_view content) {
  return write_file_atomically(fs, path, [&](WritableFile& file) { return file.append(content); });
}

Status write_file_once(FileSystem& fs, const std::string& path, std::string_view content) {
  if (!fs.is_object_store(path)) return write_file_atomically(fs, path, content);
  ASSIGN_OR_RETURN(const auto file, fs.create_once(path));
  RETURN_IF_ERROR(file->append(content));
  return file->close();
}

}  // namespace ostro::io
