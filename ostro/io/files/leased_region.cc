#include "ostro/io/files/leased_region.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <list>
#include <mutex>
#include <thread>

#include "ostro/base/check.h"
#include "ostro/base/huge_pages.h"
#include "ostro/base/log.h"
#include "ostro/io/files/direct_file.h"

namespace ostro::io {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSettled = 16 * kHugePage;  // bytes that are replaced at a time

std::atomic<int64_t> leased_files = 0;

Error cannot(const std::string& path, const char* why) {
  return unsupported(fmt::format("{} is not mapped: {}", path, why));
}

// All regions that have leases, and the thread that lets them settle. The kernel sends it a signal when a
// lease has to end. The signal is for this thread alone, which takes it by sigwaitinfo: a handler could run
// in a thread that waits for the lease itself. Never destroyed: a signal may come at the very end.
class Keeper {
 public:
  void add(const std::shared_ptr<LeasedRegion>& region) {
    const std::lock_guard lock(mutex_);
    std::erase_if(regions_, [](const auto& one) { return one.expired(); });
    regions_.push_back(region);
  }
  void settle_all() {
    std::list<std::weak_ptr<LeasedRegion>> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(regions_);
    }
    for (const auto& one : all)
      if (const auto region = one.lock()) region->settle();
  }
  // The thread that gets the signal for leases.
  pid_t thread() const { return thread_; }
  void wake() const {
    // No queue has room: SIGIO needs none.
    if (::syscall(SYS_tgkill, ::getpid(), thread_, signal()) != 0)
      ::syscall(SYS_tgkill, ::getpid(), thread_, SIGIO);
  }

  static int signal() { return SIGRTMIN + 7; }  // + 6 is that of base/watch/stacks.h

  static Keeper& get() {
    static auto* const keeper = new Keeper();
    return *keeper;
  }

 private:
  Keeper() {
    std::promise<pid_t> begun;
    std::thread([this, &begun] {
      sigset_t taken;
      sigemptyset(&taken);
      sigaddset(&taken, signal());
      sigaddset(&taken, SIGIO);  // what the kernel sends when too many signals wait
      ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
      begun.set_value(::gettid());
      for (;;)
        if (::sigwaitinfo(&taken, nullptr) > 0) settle_all();
    }).detach();
    thread_ = begun.get_future().get();
  }

  pid_t thread_;
  std::mutex mutex_;
  std::list<std::weak_ptr<LeasedRegion>> regions_;
};

class Region final : public LeasedRegion {
 public:
  Region(std::vector<std::unique_ptr<RandomAccessFile>> files, Check check)
      : files_(std::move(files)), check_(std::move(check)) {
    for (const auto& file : files_) bytes_ += static_cast<size_t>(file->size());
    leased_files += std::ssize(files_);
  }
  ~Region() override {
    leased_files -= std::ssize(files_);
    if (begin_ != nullptr) munmap(begin_, bytes_);
  }

  Status open() {
    begin_ = map_at_huge_page(bytes_, PROT_NONE);
    if (begin_ == nullptr) return cannot(files_[0]->path(), "there are no addresses for it");
    std::byte* at = begin_;
    for (const auto& file : files_) {
      RETURN_IF_ERROR(take_lease(*file));
      const auto size = static_cast<size_t>(file->size());
      // Populated for reading alone: what may be written would be copied at once.
      if (mmap(at, size, PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_POPULATE, descriptor(*file), 0) ==
              MAP_FAILED ||
          mprotect(at, size, PROT_READ | PROT_WRITE) != 0)
        return cannot(file->path(), std::strerror(errno));
      at += size;
    }
    return check_(bytes());
  }

  std::span<std::byte> bytes() override { return {begin_, bytes_}; }

  // Whether a process waits for the end of a lease already.
  bool is_wanted() {
    const std::lock_guard lock(mutex_);
    return std::any_of(files_.begin(), files_.end(), [](const auto& file) { return !has_lease(*file); });
  }

  // Each piece is copied to other addresses, from where its pages move to those of the region: a thread that
  // reads there sees the old pages or the new ones.
  void settle() override {
    const std::lock_guard lock(mutex_);
    if (files_.empty()) return;
    for (size_t at = 0; at < bytes_; at += kSettled) {
      const size_t size = std::min(kSettled, bytes_ - at);
      std::byte* const copy = map_at_huge_page(size, PROT_READ | PROT_WRITE);
      OSTRO_CHECK(copy != nullptr, "{}: no memory for a copy of it", files_[0]->path());
      madvise(copy, size, MADV_HUGEPAGE);  // only a hint
      std::memcpy(copy, begin_ + at, size);
      OSTRO_CHECK(mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, begin_ + at) != MAP_FAILED,
                  "{}: {} bytes of it cannot take their place in memory: {}", files_[0]->path(), size,
                  std::strerror(errno));
    }
    for (const auto& file : files_) {
      if (has_lease(*file)) continue;
      const Status same = check_(bytes());
      OSTRO_CHECK(same.ok(), "{} was changed while its bytes were in use: {}", file->path(),
                  same.error().message());
      break;
    }
    leased_files -= std::ssize(files_);
    files_.clear();  // which ends the leases
  }

 private:
  static int descriptor(const RandomAccessFile& file) {
    return dynamic_cast<const DirectFile&>(file).descriptor();
  }

  static bool has_lease(const RandomAccessFile& file) {
    return ::fcntl(descriptor(file), F_GETLEASE) == F_RDLCK;
  }

  static Status take_lease(const RandomAccessFile& file) {
    const int fd = descriptor(file);
    const f_owner_ex owner = {F_OWNER_TID, Keeper::get().thread()};
    if (::fcntl(fd, F_SETOWN_EX, &owner) != 0 || ::fcntl(fd, F_SETSIG, Keeper::signal()) != 0 ||
        ::fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
      return cannot(file.path(), std::strerror(errno));
    return {};
  }

  std::vector<std::unique_ptr<RandomAccessFile>> files_;  // empty: settled
  const Check check_;
  std::byte* begin_ = nullptr;
  size_t bytes_ = 0;
  std::mutex mutex_;
};

}  // namespace

Result<std::shared_ptr<LeasedRegion>> LeasedRegion::map(FileSystem& fs, const std::vector<std::string>& paths,
                                                        Check check) {
  OSTRO_CHECK(!paths.empty(), "a region without files");
  if (leased_files + std::ssize(paths) > kMostFiles) return cannot(paths[0], "too many files are");
  std::vector<std::unique_ptr<RandomAccessFile>> files;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(files.emplace_back(), fs.open(path));
    if (dynamic_cast<const DirectFile*>(files.back().get()) == nullptr)
      return cannot(path, "it is no file of this machine");
    if (files.back()->size() == 0 || files.back()->size() % kPage != 0)
      return cannot(path, "it does not consist of whole pages");
  }
  const auto region = std::make_shared<Region>(std::move(files), std::move(check));
  RETURN_IF_ERROR(region->open());
  Keeper::get().add(region);
  if (region->is_wanted()) region->settle();  // the signal came before the keeper knew of it
  return std::shared_ptr<LeasedRegion>(region);
}

void settle_regions() { Keeper::get().wake(); }

}  // namespace ostro::io
