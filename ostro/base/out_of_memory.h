// OutOfMemory: thrown when a large block cannot be allocated. Programs report it as an error and end.
#pragma once

#include <cstddef>
#include <new>

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

// Returns the error for any bad_alloc, of code kIo: "out of memory: 549755813888 bytes were asked for; 22.1
// GB can still be had (MemAvailable), and this process holds 1.2 GB".
Error out_of_memory_error(const std::bad_alloc& thrown);

// Changes what happens when an exception leaves a thread because memory is exhausted or no thread can be
// started: the process prints one line "error: ..." to standard error and ends with this exit status, instead
// of aborting. Other exceptions abort as before. Call it once, when the program starts.
void end_on_out_of_memory(int exit_status);

}  // namespace ostro
