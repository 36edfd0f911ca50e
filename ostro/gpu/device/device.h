// Device: the interface to a GPU that the engine needs: memory, compiled text, launches in order.
//
// Two sub-rooms implement it: gpu/driver with libcuda and NVRTC, gpu/emulated on the CPU. All work of one
// Device runs in one queue, in the order of the calls: launches, copies, and the reads and writes of its
// Memory. Calls return before the work is done, except read() and synchronise(). Errors of work that was
// begun earlier come from a later call, and name the place that the failing call was given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/runtime/memory.h"

namespace ostro::gpu {

// A place in the memory of a device; adding bytes moves it. Not a pointer: the host must not follow it.
struct Address {
  uint64_t at = 0;
  Address operator+(int64_t bytes) const { return {at + static_cast<uint64_t>(bytes)}; }
  bool operator==(const Address&) const = default;
};

struct DeviceLimits {
  std::string name;                // "NVIDIA H100 80GB HBM3"
  int compute_capability = 0;      // 90 is 9.0; the text is compiled for it
  int multiprocessors = 0;         // at least as many blocks run at the same time
  int64_t memory_bytes = 0;        // all memory, free or not
  int64_t block_shared_bytes = 0;  // the most shared memory of a block, static and dynamic together
  bool tensor_rule = false;        // its tensor cores sum products of bf16 as numerics.md, N23, says
  bool warpgroups = false;         // it has the words of cuda/text/warpgroups.cuh, and maps of tiles
};

// A matrix in device memory as kernels copy it tile by tile (COPY_TILE), in the words of the device.
struct TileMap {
  std::array<std::byte, 128> bytes = {};
};

// The shape of a launch: x * y * z blocks, each of `threads` threads in one dimension (a multiple of 32, at
// most 1024), with `shared_bytes` of dynamic shared memory.
struct LaunchShape {
  int64_t x = 1, y = 1, z = 1;
  int threads = 64;
  int64_t shared_bytes = 0;
};

// A function of a loaded text. Valid as long as its Code.
struct Kernel {
  void* handle = nullptr;
};

// Loaded text; unloaded with the last handle, which must not outlive the Device.
class Code {
 public:
  virtual ~Code() = default;
  // The kernel that the text declares by KERNEL(name, Argument). Error: the text, which is named, has none.
  virtual Result<Kernel> kernel(const std::string& name) const = 0;
};

// Marks a point of the queue.
class Event {
 public:
  virtual ~Event() = default;
  // Waits until the work before the mark is done; returns its errors.
  virtual Status wait() = 0;
};

// Thread-safe. It lives until the process ends, as its Memory does.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceLimits& limits() const = 0;
  // The memory of the device: blocks whose host() is null, allocated and freed in the order of the queue. Its
  // name() is "cuda:0" or "cuda_emulated".
  virtual runtime::Memory& memory() = 0;
  // The address of the first byte of a block of memory(), aligned to 256 bytes.
  virtual Address address(const runtime::Block& block) const = 0;

  // Compiles text of the language that cuda/text/head.cu describes, complete with that head, and loads it.
  // `name` is for messages and files ("routines/gather"). Compiled text is kept by its content, in the
  // process and on disk. The bits of docs/spec/numerics.md need these options of NVRTC: -ftz=true
  // -prec-div=true -prec-sqrt=true -fmad=false. Error: the message of the compiler, with the name.
  virtual Result<std::shared_ptr<const Code>> load(const std::string& name, const std::string& text) = 0;

  // Starts a kernel. `argument` is the bytes of the kernel's one parameter, a struct passed by value, at most
  // 4,096 bytes. `place` says for errors which op this is ("leaf 12.0.3: layers/mlp dot"); it is copied.
  virtual Status launch(Kernel kernel, const LaunchShape& shape, std::span<const std::byte> argument,
                        std::string_view place) = 0;
  // The map of `rows` rows of `row_bytes` bytes, the first at `at`, for tiles of `tile_rows` rows (at most
  // 256) of 128 bytes. `at` and row_bytes are multiples of 16. Error: kUnsupported where limits().warpgroups
  // is false.
  virtual Result<TileMap> tile_map(Address at, int64_t rows, int64_t row_bytes, int64_t tile_rows) = 0;
  // Copies between two places of this device, which do not overlap.
  virtual Status copy(Address to, Address from, int64_t bytes) = 0;
  // Copies from the host to the device and back, like the functions of Memory, for places inside a block.
  // read() waits.
  virtual Status write(Address to, std::span<const std::byte> from) = 0;
  virtual Status read(Address from, std::span<std::byte> to) = 0;

  // Keeps a text on disk for this kind of GPU, driver and compiler, under a key of the caller's; finds it
  // again in this process and in later ones. A device that keeps nothing finds nothing.
  virtual void keep_note(const std::string& /*key*/, const std::string& /*text*/) {}
  virtual std::optional<std::string> find_note(const std::string& /*key*/) { return std::nullopt; }

  virtual Result<std::unique_ptr<Event>> record() = 0;
  // Waits for everything that was begun, and returns its errors.
  virtual Status synchronise() = 0;
};

}  // namespace ostro::gpu
