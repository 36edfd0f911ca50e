// RunWatch: is told while a program runs which inputs it reads next and which results are final, so that
// inputs may still arrive, and results be used, during the run.
//
// All functions are called by the thread that runs the program, between its steps; an error ends the run.
// Bytes are counted from the beginning of the array, which is dense.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/runtime/buffer.h"

namespace ostro::runtime {

class RunWatch {
 public:
  virtual ~RunWatch() = default;
  // The run begins. `results`: where they will be, in the order of the program; not written yet.
  virtual void begin(const std::vector<Buffer>& results) = 0;
  // The program is about to read the bytes [begin, end) of input `param`. It may ask more than once.
  virtual Status before_read(size_t param, int64_t begin, int64_t end) = 0;
  // The bytes [begin, end) of this result are final. Every byte of a result is told at most once; the rest is
  // final when the run has ended.
  virtual Status made(size_t result, int64_t begin, int64_t end) = 0;
};

}  // namespace ostro::runtime
