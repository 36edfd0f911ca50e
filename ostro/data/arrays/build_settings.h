// How a token store is built or read as a whole, and how far that has come.
#pragma once

#include <cstdint>
#include <functional>

#include "ostro/data/arrays/array_writer.h"

namespace ostro::data {

struct BuildProgress {
  int64_t files_done = 0, files_total = 0;
  int64_t bytes_done = 0, bytes_total = 0;  // of the files as they lie on disk
  int64_t bytes_resumed = 0;                // of bytes_done: by a build before this one
  int64_t documents = 0, tokens = 0;        // of both splits

  // Adds chunk `number` of an array, of so many elements of `bytes` each, where a store is read as a whole.
  void count_chunk(ArrayId id, int64_t number, int64_t elements, size_t bytes) {
    bytes_done += elements * static_cast<int64_t>(bytes);
    if (id == ArrayId::kData) tokens += elements;
    if (id == ArrayId::kOffsets) documents += elements - (number == 0);  // element 0 is the number of rows
  }
};

// How to build: nothing here changes the ledger, but for `layout`.
struct BuildSettings {
  int threads = 0;  // 0: as many as the machine has
  int threads_or_all() const;
  int64_t commit_bytes = 64 << 20;  // of text: how much work a kill may cost
  ArrayLayout layout;               // tests use small chunks
  bool append = false;  // extend a finished store by files that its sources have at the end of their lists
  std::function<void(const BuildProgress&)> progress;  // after every unit; never twice at once
};

}  // namespace ostro::data
