#include "ostro/base/aligned.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "ostro/base/huge_pages.h"
#include "ostro/base/out_of_memory.h"

namespace ostro {
namespace {

constexpr size_t kSmallPage = 4096;
constexpr size_t kKeptFrom = size_t{1} << 20;  // smaller blocks are left to malloc

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeep = false;  // a kept block would hide a use-after-free
#else
constexpr bool kKeep = true;
#endif

bool huge(size_t bytes) { return bytes >= 2 * kHugePage; }

// The size of a large block is a multiple of a small page, not of a huge page. Otherwise part of its last
// huge page would be unused memory.
size_t rounded_up(size_t bytes) {
  const size_t unit = huge(bytes) ? kSmallPage : kAlignment;
  return bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
}

// Returns whether a block of this size comes from mmap, not from malloc. mmap gives zeros.
bool mapped(size_t rounded) { return kKeep && huge(rounded); }

// An aligned block inside a block of malloc, whose address stands before it. posix_memalign is not used: with
// glibc before 2.38 a freed aligned block is hardly ever used again, and a long run grows without end
// (https://sourceware.org/bugzilla/show_bug.cgi?id=14581).
std::byte* inside_malloc(size_t rounded) {
  void* const whole = std::malloc(rounded + kAlignment);
  if (whole == nullptr) return nullptr;
  auto* const begin = static_cast<std::byte*>(whole);
  // malloc aligns to 16 bytes, so there is always room for the address.
  std::byte* const p = begin + kAlignment - reinterpret_cast<uintptr_t>(whole) % kAlignment;
  std::memcpy(p - sizeof whole, &whole, sizeof whole);
  return p;
}

void free_inside_malloc(std::byte* p) {
  void* whole = nullptr;
  std::memcpy(&whole, p - sizeof whole, sizeof whole);
  std::free(whole);
}

// A new block, or nullptr if memory is exhausted.
std::byte* fresh(size_t rounded) {
  void* p = nullptr;
  if (mapped(rounded))
    p = map_at_huge_page(rounded, PROT_READ | PROT_WRITE);
  else if (!huge(rounded))
    p = inside_malloc(rounded);
  else if (posix_memalign(&p, kHugePage, rounded) != 0)
    return nullptr;
  if (p != nullptr && huge(rounded))
    madvise(p, rounded, MADV_HUGEPAGE);  // only a hint: if it fails, this is slower, not wrong
  return static_cast<std::byte*>(p);
}

void release(std::byte* p, size_t rounded) {
  if (mapped(rounded))
    munmap(p, rounded);
  else if (!huge(rounded))
    free_inside_malloc(p);
  else
    std::free(p);
}

// Freed blocks by size, for reuse. Thread-safe. A request of a size that is not kept frees all kept blocks
// when they are more than kKeptUnasked: the program has changed its sizes, and the old blocks would only be a
// second footprint.
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
      for (std::byte* p : list) release(p, bytes);
    blocks_.clear();
    total_ = 0;
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<std::byte*>> blocks_;
  size_t total_ = 0;
};

// Never destroyed: buffers in static variables may be freed at the very end.
Keeper& keeper() {
  static auto* const k = new Keeper();
  return *k;
}

}  // namespace

void AlignedFree::operator()(std::byte* p) const {
  if (kKeep && p != nullptr && bytes >= kKeptFrom)
    keeper().keep(p, bytes);
  else if (p != nullptr)
    release(p, bytes);
}

size_t kept_bytes() { return keeper().total(); }
void release_kept_memory() { keeper().clear(); }

namespace {

AlignedBytes allocate(size_t bytes, bool zeros) {
  const size_t rounded = rounded_up(bytes);
  std::byte* p = kKeep && rounded >= kKeptFrom ? keeper().take(rounded) : nullptr;
  const bool is_zero = p == nullptr && mapped(rounded);
  if (p == nullptr) p = fresh(rounded);
  if (p == nullptr) {  // kept blocks may occupy the memory
    keeper().clear();
    p = fresh(rounded);
  }
  if (p == nullptr) throw OutOfMemory(bytes);
  if (zeros && !is_zero) std::memset(p, 0, bytes);
  return AlignedBytes(p, AlignedFree{rounded});
}

}  // namespace

AlignedBytes allocate_aligned(size_t bytes) { return allocate(bytes, false); }
AlignedBytes allocate_zeroed(size_t bytes) { return allocate(bytes, true); }

}  // namespace ostro
