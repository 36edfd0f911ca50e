#include "ostro/base/out_of_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <system_error>

#include "ostro/base/machine.h"

namespace ostro {
namespace {

int status_of_end = 1;

// Writes without allocating: there may be no memory at all. Of several threads the first one writes.
[[noreturn]] void end_with(const char* what, const char* more) {
  static std::atomic_flag begun;
  while (begun.test_and_set()) ::pause();
  for (const char* part : {"error: ", what, more, "\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  ::_exit(status_of_end);
}

[[noreturn]] void on_terminate() {
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const OutOfMemory& e) {
    end_with(e.what(), "");
  } catch (const std::bad_alloc&) {
    end_with("out of memory", "");
  } catch (const std::system_error& e) {
    if (e.code() == std::errc::resource_unavailable_try_again)
      end_with("a thread cannot be started",
               ": out of memory, or the limit of processes (ulimit -u) is reached");
  } catch (...) {
  }
  std::abort();
}

double gigabytes(int64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t mapped = 0, resident = 0;
  return file >> mapped >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

OutOfMemory::OutOfMemory(size_t bytes) noexcept {
  std::snprintf(text_, sizeof text_, "out of memory: %zu bytes were asked for", bytes);
}

Error out_of_memory_error(const std::bad_alloc& thrown) {
  const auto* sized = dynamic_cast<const OutOfMemory*>(&thrown);
  const AvailableMemory left = available_memory();
  return io_error(fmt::format("{}; {:.2f} GB can still be had ({}), and this process holds {:.2f} GB",
                              sized != nullptr ? sized->what() : "out of memory", gigabytes(left.bytes),
                              left.source, gigabytes(resident_bytes())));
}

void end_on_out_of_memory(int exit_status) {
  status_of_end = exit_status;
  std::set_terminate(on_terminate);
}

}  // namespace ostro
