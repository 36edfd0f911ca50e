// GpuQueue: the context of a GPU in this process, and the one queue (a stream) in which all its work runs.
// Only what is copied to the host beside that work has a stream of its own.
//
// Most calls only begin work, so its errors come from a later call. Such an error names the ops that were
// begun since the queue was last known to have no error. After an error that ends the device, every later
// call returns that error. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/gpu/driver/driver.h"

namespace ostro::gpu {

class GpuQueue {
 public:
  // Both must outlive it. Errors: kBusy when another process has the GPU exclusively; kDevice.
  static Result<std::unique_ptr<GpuQueue>> open(const Driver& driver, const GpuFacts& facts);

  const std::string& name() const { return name_; }  // "cuda:0"
  const GpuFacts& facts() const { return facts_; }
  const CudaSlots& cuda() const { return driver_.slots(); }
  void* stream() const { return stream_; }
  // The stream for copies beside the queue, made when it is first asked for.
  Result<void*> copy_stream();

  // Makes the context current in the calling thread. Every function that calls the driver calls it first.
  // Error: the one that ended the device.
  Status enter();
  // Returns Status() for 0, else the error of the driver's call. `doing` names the call ("launch"), `place`
  // the op; it may be empty.
  Status check(int result, std::string_view doing, std::string_view place = {}) {
    return result == 0 ? Status() : fail(result, doing, place);
  }
  // Notes that a kernel was launched for the op at `place`.
  void note_launch(std::string_view place);
  // launched(): the number of the newest launch. note_done(): notes that all launches up to this one are
  // done, so a later error is not theirs.
  uint64_t launched();
  void note_done(uint64_t launch);
  // Waits for all work that was begun, and returns its errors.
  Status wait(std::string_view doing);
  // True after an error that ended the device: the driver must not be called any more.
  bool ended() const { return ended_; }

 private:
  GpuQueue(const Driver& driver, const GpuFacts& facts);
  Status fail(int result, std::string_view doing, std::string_view place);

  const Driver& driver_;
  const GpuFacts& facts_;
  const std::string name_;
  void *context_ = nullptr, *stream_ = nullptr;
  std::mutex copy_mutex_;
  void* copy_stream_ = nullptr;
  std::atomic<bool> ended_ = false;
  std::mutex mutex_;
  std::optional<Error> end_;
  // Launches have ascending numbers from 1. Launch i, of the newest ones, is at place i modulo their number;
  // places are written over, so that a launch needs no memory.
  uint64_t launched_ = 0, done_ = 0;
  std::vector<std::string> places_;
};

}  // namespace ostro::gpu
