// LeasedRegion: files as memory, one behind another, without a copy at first. Large files that are in the
// page cache are there at once, where reading them costs fresh memory.
//
// No process can change what is mapped: each file has a read lease (fcntl, F_SETLEASE), so a process that
// opens it for writing, or cuts it, has to wait. That makes the region settle: its bytes are copied into
// memory of its own at the same addresses, then the lease ends. Threads read on meanwhile.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

class LeasedRegion {
 public:
  // Checks the bytes of a region. It must be callable as long as the region lives, from any thread.
  using Check = std::function<Status(std::span<const std::byte> bytes)>;

  // Maps whole files, in this order, and checks them. kUnsupported where that is not possible, and they have
  // to be read: files of another machine, without a lease, not of whole pages, or too many (all regions of a
  // process have at most kMostFiles). Other errors: those of opening, and of `check`.
  static Result<std::shared_ptr<LeasedRegion>> map(FileSystem& fs, const std::vector<std::string>& paths,
                                                   Check check);
  virtual ~LeasedRegion() = default;

  // Private to the process: written bytes reach no file.
  virtual std::span<std::byte> bytes() = 0;
  // Copies the bytes into memory of their own, in huge pages, and ends the leases. If a lease was lost before
  // that (a writer that waited longer than the system lets it, /proc/sys/fs/lease-break-time), the bytes are
  // checked again; should they be others, the process ends, because threads may have read them.
  virtual void settle() = 0;

  static constexpr int64_t kMostFiles = 600;
};

// Lets all regions settle, one after another, on a thread of its own: a program calls this when it has begun
// its work and memory is cheap again.
void settle_regions();

}  // namespace ostro::io
