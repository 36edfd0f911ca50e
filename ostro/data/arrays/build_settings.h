// BuildSettings, BuildProgress: settings and progress of all that builds a token store or reads a whole one.
// Values; callbacks are called by one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <thread>

#include "ostro/data/arrays/array_writer.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::data {

struct BuildProgress {
  int64_t files_done = 0, files_total = 0;
  int64_t bytes_done = 0, bytes_total = 0;  // of the stored files
  int64_t bytes_resumed = 0;                // part of bytes_done that an earlier build did
  int64_t documents = 0, tokens = 0;        // of both splits

  // Adds chunk `number` of an array, with `elements` elements of `bytes` bytes each. For reading a whole
  // store.
  void count_chunk(ArrayId id, int64_t number, int64_t elements, size_t bytes) {
    bytes_done += elements * static_cast<int64_t>(bytes);
    if (id == ArrayId::kData) tokens += elements;
    if (id == ArrayId::kOffsets) documents += elements - (number == 0);  // element 0 is the number of rows
  }
};

// How to build. Only `layout` changes the ledger.
struct BuildSettings {
  int threads = 0;  // 0: one for each core
  int threads_or_all() const {
    return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  int64_t commit_bytes = 64 << 20;  // bytes of text between two commits: work that a kill may lose
  ArrayLayout layout;               // tests use small chunks
  bool append = false;              // extend a finished store by new files at the end of the lists of sources
  std::function<void(const BuildProgress&)> progress;  // called after every unit, by one thread at a time
  // Called while a tokenizer is trained before the build. While it counts, `done` and `total` are bytes of
  // the files as they are stored.
  std::function<void(const tokenizer::TrainProgress&)> tokenizer_progress = {};
};

}  // namespace ostro::data
