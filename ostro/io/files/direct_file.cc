#include "ostro/io/files/direct_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ostro::io {
namespace {

constexpr int64_t kBounce = int64_t{1} << 20;  // bytes of the buffer for parts that cannot be read into place

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};

// Whole blocks in aligned memory, of this thread.
std::byte* bounce_buffer() {
  thread_local const std::unique_ptr<std::byte, Free> buffer(
      static_cast<std::byte*>(std::aligned_alloc(kDirectBlock, kBounce)));
  OSTRO_CHECK(buffer != nullptr, "out of memory: {} bytes were asked for", kBounce);
  return buffer.get();
}

// One pread. When the system refuses O_DIRECT (EINVAL), clears it on the descriptor and reads again.
int64_t read_once(int descriptor, int64_t offset, std::byte* out, int64_t bytes) {
  for (;;) {
    const ssize_t n = ::pread(descriptor, out, static_cast<size_t>(bytes), static_cast<off_t>(offset));
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (errno != EINVAL || flags < 0 || (flags & O_DIRECT) == 0) return -1;
    if (::fcntl(descriptor, F_SETFL, flags & ~O_DIRECT) != 0) return -1;
  }
}

}  // namespace

Result<std::unique_ptr<RandomAccessFile>> open_direct(FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, fs.open(path));
  if (auto* direct = dynamic_cast<DirectFile*>(file.get())) direct->read_directly();
  return file;
}

// O_DIRECT needs offset, length and memory at multiples of a block. If offset and memory are equal modulo a
// block, only the first and last partial blocks go through the bounce buffer and the rest is read into place;
// otherwise everything goes through it.
int64_t read_direct(int descriptor, int64_t offset, std::span<std::byte> out) {
  const auto size = static_cast<int64_t>(out.size());
  const bool fits = (reinterpret_cast<uintptr_t>(out.data()) - static_cast<uintptr_t>(offset)) %
                        static_cast<uintptr_t>(kDirectBlock) ==
                    0;
  for (int64_t done = 0; done < size;) {
    const int64_t at = offset + done, in_block = at % kDirectBlock;
    const int64_t whole = (size - done) / kDirectBlock * kDirectBlock;
    if (fits && in_block == 0 && whole > 0) {
      const int64_t n = read_once(descriptor, at, out.data() + done, whole);
      if (n < 0) return n;
      done += n;
      if (n == 0) return done;  // the end of the file
      continue;
    }
    // Up to the next block where the rest can be read into its place, else as much as there is room for.
    const int64_t wanted = fits && in_block != 0 ? std::min(size - done, kDirectBlock - in_block)
                                                 : std::min(size - done, kBounce - in_block);
    const int64_t blocks = (in_block + wanted + kDirectBlock - 1) / kDirectBlock * kDirectBlock;
    std::byte* const buffer = bounce_buffer();
    const int64_t n = read_once(descriptor, at - in_block, buffer, blocks);
    if (n < 0) return n;
    const int64_t got = std::clamp<int64_t>(n - in_block, 0, wanted);
    std::memcpy(out.data() + done, buffer + in_block, static_cast<size_t>(got));
    done += got;
    if (got == 0) return done;
  }
  return size;
}

}  // namespace ostro::io
