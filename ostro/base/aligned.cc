#include "ostro/base/aligned.h"

#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "ostro/base/check.h"

namespace ostro {
namespace {

constexpr size_t kHugePage = size_t{2} << 20, kSmallPage = 4096;
constexpr size_t kKeptFrom = size_t{1} << 20;      // smaller blocks are malloc's business
constexpr size_t kKeptUnasked = size_t{64} << 20;  // kept although a new request does not fit them

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeep = false;  // a kept block would hide a use after free
#else
constexpr bool kKeep = true;
#endif

class Keeper {
 public:
  // A kept block of exactly this size, or nullptr.
  std::byte* take(size_t bytes) {
    std::lock_guard lock(mutex_);
    const auto it = blocks_.find(bytes);
    if (it == blocks_.end()) {
      if (total_ > kKeptUnasked) drop();
      return nullptr;
    }
    std::byte* p = it->second.back();
    it->second.pop_back();
    if (it->second.empty()) blocks_.erase(it);
    total_ -= bytes;
    return p;
  }

  void keep(std::byte* p, size_t bytes) {
    std::lock_guard lock(mutex_);
    blocks_[bytes].push_back(p);
    total_ += bytes;
  }

  size_t total() {
    std::lock_guard lock(mutex_);
    return total_;
  }

  void clear() {
    std::lock_guard lock(mutex_);
    drop();
  }

 private:
  void drop() {
    for (auto& [bytes, list] : blocks_)
      for (std::byte* p : list) std::free(p);
    blocks_.clear();
    total_ = 0;
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<std::byte*>> blocks_;
  size_t total_ = 0;
};

// Never destroyed: buffers of static lifetime may be freed at any time.
Keeper& keeper() {
  static auto* const k = new Keeper();
  return *k;
}

}  // namespace

void AlignedFree::operator()(std::byte* p) const {
  if (kKeep && p != nullptr && bytes >= kKeptFrom)
    keeper().keep(p, bytes);
  else
    std::free(p);
}

size_t kept_bytes() { return keeper().total(); }
void release_kept_memory() { keeper().clear(); }

AlignedBytes allocate_aligned(size_t bytes) {
  const size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kAlignment;
  // A large block ends in small pages: the rest of a huge one would be memory that nobody uses.
  const size_t unit = alignment == kHugePage ? kSmallPage : kAlignment;
  const size_t rounded = bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
  if (kKeep && rounded >= kKeptFrom)
    if (std::byte* kept = keeper().take(rounded)) return AlignedBytes(kept, AlignedFree{rounded});
  void* p = nullptr;
  OSTRO_CHECK(posix_memalign(&p, alignment, rounded) == 0, "out of memory: {} bytes were asked for", bytes);
  if (alignment == kHugePage)
    madvise(p, rounded, MADV_HUGEPAGE);  // advice only: failure costs speed, not bits
  return AlignedBytes(static_cast<std::byte*>(p), AlignedFree{rounded});
}

}  // namespace ostro
