// OutOfMemory: thrown where a large block cannot be had. Programs report it as an error and end.
#pragma once

#include <cstddef>
#include <new>
#include <string>

#include "ostro/base/error.h"

namespace ostro {

// Its text names the bytes that were asked for, and is made without allocating.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(size_t bytes) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[96];
};

// "out of memory: 549755813888 bytes were asked for; 22.1 GB can still be had (MemAvailable), and this
// process holds 1.2 GB", of code kIo. For any bad_alloc.
Error out_of_memory_error(const std::bad_alloc& thrown);

// From here on an exception that leaves a thread, where it is that memory is exhausted, or that no thread can
// be started, is reported in one line "error: ..." on standard error and ends the process with this exit
// status; without it the process would abort. Other exceptions abort as before.
void end_on_out_of_memory(int exit_status);

}  // namespace ostro
