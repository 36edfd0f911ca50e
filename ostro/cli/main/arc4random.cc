// arc4random for a C library older than 2.36, which has none: Debian's libstdc++ calls it in
// std::random_device, and a package brings that library along (packaging/tree.py). The program's own comes
// before the C library's.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" [[gnu::visibility("default")]] uint32_t arc4random() noexcept {
  uint32_t drawn = 0;
  if (getentropy(&drawn, sizeof drawn) != 0) std::abort();
  return drawn;
}
