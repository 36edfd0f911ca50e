#include "ostro/io/files/write_rate.h"

#include <algorithm>
#include <chrono>

namespace ostro::io {

Result<double> write_rate(FileSystem& fs, const std::string& path) {
  constexpr size_t kBytes = size_t{32} << 20, kPiece = size_t{1} << 20;
  const auto begin = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const auto file, fs.create(path));
  const std::string piece(kPiece, 'o');
  Status done;
  for (size_t written = 0; done.ok() && written < kBytes; written += kPiece) done = file->append(piece);
  if (done.ok()) done = file->sync();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  (void)file->close();
  (void)fs.remove(path);
  if (!done.ok()) return done.error();
  return static_cast<double>(kBytes) / std::max(seconds, 1e-9);
}

}  // namespace ostro::io
