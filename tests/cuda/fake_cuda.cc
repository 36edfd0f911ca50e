// A driver for tests: libcuda.so.1 with the functions that Ostro uses, over the host's memory, and faults on
// demand.
//
// Work is put into the queue of its stream and done as late as a driver may: when it is waited for. So a
// buffer that is changed too early, or read before its copy, shows. Memory that was taken holds no zeros.
// FAKE_CUDA names faults, with commas between them; it is read at every call:
//   no_device, old, stub, busy   at the start: no GPU, CUDA 11.4, the toolkit's stand-in, it is another's
//   full:N                       the N-th request for memory, and all later ones, find none
//   pinned:N                     requests for pinned memory of the host find none after the first N
//   launch, launch:N             every launch, or the N-th, asks for more than the GPU has
//   fault:N, lost:N              the N-th kernel fails when it runs; all later calls fail then
//   kill:N                       the process is killed at the N-th launch
//   unordered                    a stream does not wait for the events of another
//   memory:BYTES, gpus:N, sm:NN  what the GPU is: 1 GB, one, 90
// When the process ends, the file that FAKE_CUDA_COUNTS names gets the numbers of requests for memory and of
// launches.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ostro/gpu/driver/abi.h"
#include "ostro/gpu/emulated/emulated_device.h"
#include "tests/cuda/fake_kernels.h"

namespace {

using namespace ostro::gpu;

constexpr int kInvalidValue = 1;
constexpr unsigned char kUnwritten = 0xa7;
constexpr size_t kPoisoned = 16 << 20;  // of a large block only the beginning

// The number behind "name:" among the faults, 0 behind "name" alone; nothing when it is not among them.
std::optional<int64_t> fault(std::string_view name) {
  const char* all = std::getenv("FAKE_CUDA");
  std::string_view rest = all == nullptr ? "" : all;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(word.size() == rest.size() ? rest.size() : word.size() + 1);
    if (word == name) return 0;
    if (word.starts_with(name) && word.size() > name.size() && word[name.size()] == ':')
      return std::atoll(std::string(word.substr(name.size() + 1)).c_str());
  }
  return std::nullopt;
}

struct Work {
  uint64_t number;
  std::function<int()> run;
};

struct FakeStream {
  std::list<Work> queue;
  uint64_t begun = 0;
};

struct Fake {
  std::recursive_mutex mutex;
  std::map<uint64_t, size_t> blocks;
  size_t used = 0;
  int64_t allocations = 0, launches = 0, runs = 0, pinned = 0;
  std::list<FakeStream> streams;
  int sticky = 0;

  size_t total() const { return static_cast<size_t>(fault("memory").value_or(int64_t{1} << 30)); }
  static void begin(void* stream, std::function<int()> run) {
    auto& of = *static_cast<FakeStream*>(stream);
    of.queue.push_back({++of.begun, std::move(run)});
  }
  // Does a stream's work up to that number.
  int finish(FakeStream& of, uint64_t last) {
    while (!of.queue.empty() && of.queue.front().number <= last && sticky == 0) {
      const Work work = std::move(of.queue.front());
      of.queue.pop_front();
      const int result = work.run();
      if (sticky == 0) sticky = result;
    }
    return sticky;
  }
  int finish_all() {
    for (FakeStream& of : streams) (void)finish(of, of.begun);
    return sticky;
  }
  // Whether the bytes lie inside a block.
  bool holds(uint64_t at, size_t bytes) const {
    auto after = blocks.upper_bound(at);
    if (after == blocks.begin()) return false;
    const auto& [begin, size] = *--after;
    return at - begin + bytes <= size;
  }
};

Fake& fake() {
  static auto* const one = new Fake();
  return *one;
}

thread_local void* current_context = nullptr;
char the_context;

struct FakeEvent {
  FakeStream* stream = nullptr;
  uint64_t number = 0;
};
struct FakeModule {
  std::shared_ptr<ostro::test::FakeText> text;
};
struct FakeFunction {
  ostro::test::FakeKernel kernel;
  int64_t dynamic_bytes = 0;  // less than a driver's, which depends on the kernel: all must be asked for
};

// Writes the counts when the process ends.
struct AtEnd {
  ~AtEnd() {
    const char* path = std::getenv("FAKE_CUDA_COUNTS");
    if (path != nullptr) std::ofstream(path) << fake().allocations << " " << fake().launches << "\n";
  }
} at_end;

// What every call that needs a context begins with.
#define ENTER(f)                              \
  Fake& f = fake();                           \
  const std::lock_guard lock(f.mutex);        \
  if (current_context == nullptr) return 201; \
  if (f.sticky != 0) return f.sticky

}  // namespace

extern "C" {

int cuInit(unsigned) {
  if (fault("stub")) return kStubLibrary;
  return fault("no_device") ? kNoDevice : 0;
}
int cuDriverGetVersion(int* version) {
  *version = fault("old") ? 11040 : 13000;
  return 0;
}
int cuGetErrorName(int error, const char** text) {
#define NAME(ours, theirs, number) \
  if (std::string_view(#theirs).starts_with("CUDA_ERROR") && error == (number)) return *text = #theirs, 0;
  OSTRO_CUDA_VALUES(NAME)
#undef NAME
  return kInvalidValue;
}
int cuGetErrorString(int error, const char** text) {
  *text = ostro::test::failure_text().c_str();
  return error == 0 ? kInvalidValue : 0;
}
int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(fault("gpus").value_or(1));
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(bytes));
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const int capability = static_cast<int>(fault("sm").value_or(90));
  switch (attribute) {
    case kMultiprocessors: return *value = 4, 0;
    case kCapabilityMajor: return *value = capability / 10, 0;
    case kCapabilityMinor: return *value = capability % 10, 0;
    case kMostSharedBytes: return *value = 227 << 10, 0;
    default: return kInvalidValue;
  }
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = fake().total();
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  if (fault("busy")) return kDeviceUnavailable;
  *context = &the_context;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void* context) {
  current_context = context;
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  ENTER(f);
  *total = f.total();
  *free = *total - std::min(*total, f.used);
  return 0;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  ENTER(f);
  ++f.allocations;
  const auto full = fault("full");
  if (bytes == 0) return kInvalidValue;
  if ((full && f.allocations >= *full) || f.used + bytes > f.total()) return kOutOfMemory;
  void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(block, kUnwritten, std::min(bytes, kPoisoned));
  *address = reinterpret_cast<uint64_t>(block);
  f.blocks[*address] = bytes;
  f.used += bytes;
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  ENTER(f);
  if (f.finish_all() != 0) return f.sticky;
  const auto found = f.blocks.find(address);
  if (found == f.blocks.end()) return kInvalidValue;
  f.used -= found->second;
  f.blocks.erase(found);
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
int cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  ENTER(f);
  ++f.pinned;
  if (f.pinned > fault("pinned").value_or(f.pinned)) return kOutOfMemory;
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  ENTER(f);
  if (!f.holds(to, bytes)) return kInvalidValue;
  f.begin(stream, [=] { return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0; });
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  ENTER(f);
  if (!f.holds(from, bytes)) return kInvalidValue;
  f.begin(stream, [=] { return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), 0; });
  return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  ENTER(f);
  if (!f.holds(from, bytes) || !f.holds(to, bytes)) return kInvalidValue;
  f.begin(stream, [=] {
    return std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes), 0;
  });
  return 0;
}
int cuStreamCreate(void** stream, unsigned) {
  ENTER(f);
  *stream = &f.streams.emplace_back();
  return 0;
}
int cuStreamSynchronize(void* stream) {
  ENTER(f);
  auto& of = *static_cast<FakeStream*>(stream);
  return f.finish(of, of.begun);
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  ENTER(f);
  const FakeEvent marked = *static_cast<FakeEvent*>(event);
  if (!fault("unordered")) f.begin(stream, [&f, marked] { return f.finish(*marked.stream, marked.number); });
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  *event = new FakeEvent();
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  ENTER(f);
  auto& of = *static_cast<FakeStream*>(stream);
  *static_cast<FakeEvent*>(event) = {&of, of.begun};
  return 0;
}
int cuEventSynchronize(void* event) {
  ENTER(f);
  const FakeEvent marked = *static_cast<FakeEvent*>(event);
  return marked.stream == nullptr ? 0 : f.finish(*marked.stream, marked.number);
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<FakeEvent*>(event);
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  ENTER(f);
  auto text = ostro::test::FakeText::open(static_cast<const char*>(image));
  if (text == nullptr) return kInvalidImage;
  *module = new FakeModule{std::move(text)};
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER(f);
  auto kernel = static_cast<FakeModule*>(module)->text->kernel(name);
  if (!kernel) return kSymbolNotFound;
  *function = new FakeFunction{std::move(kernel)};
  return 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (attribute != kDynamicSharedBytes || value > 227 << 10) return kInvalidValue;
  static_cast<FakeFunction*>(function)->dynamic_bytes = value;
  return 0;
}
int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* address, const uint64_t* sizes,
                           const uint64_t* strides, const unsigned* box, const unsigned* steps,
                           int interleave, int swizzle, int promotion, int fill) {
  if (current_context == nullptr) return 201;
  if (type != kTileOfBytes || rank != 2 || strides[0] != sizes[0] || strides[0] % 16 != 0 || box[0] != 128 ||
      box[1] > 256 || steps[0] != 1 || steps[1] != 1 || interleave != kTileInOrder ||
      swizzle != kTileSwizzled128 || promotion != kTileThroughL2 || fill != kTileEndsInZeros ||
      reinterpret_cast<uintptr_t>(map) % 64 != 0)
    return kInvalidValue;
  const TileMap made =
      emulated_tile_map({reinterpret_cast<uint64_t>(address)}, static_cast<int64_t>(sizes[1]),
                        static_cast<int64_t>(sizes[0]), box[1]);
  std::memcpy(map, made.bytes.data(), made.bytes.size());
  return 0;
}
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned,
                   unsigned shared_bytes, void* stream, void**, void** extra) {
  ENTER(f);
  ++f.launches;
  if (fault("kill").value_or(-1) == f.launches) std::raise(SIGKILL);
  if (const auto refused = fault("launch"); refused && (*refused == 0 || *refused == f.launches))
    return kLaunchOutOfResources;
  const auto& ours = *static_cast<FakeFunction*>(function);
  if (shared_bytes > ours.dynamic_bytes) return kInvalidValue;
  if (extra[0] != kArgumentBytes || extra[2] != kArgumentSize || extra[4] != kArgumentEnd)
    return kInvalidValue;
  const auto* bytes = static_cast<const std::byte*>(extra[1]);
  const std::vector<std::byte> argument(bytes, bytes + *static_cast<size_t*>(extra[3]));
  const ostro::test::FakeShape shape{x, y, z, static_cast<int>(threads), shared_bytes};
  f.begin(stream, [&f, kernel = ours.kernel, argument, shape] {
    ++f.runs;
    if (fault("fault").value_or(-1) == f.runs) return kIllegalAddress;
    if (fault("lost").value_or(-1) == f.runs) return kEccUncorrectable;
    return kernel(argument, shape) ? 0 : kLaunchFailed;
  });
  return 0;
}

}  // extern "C"

// The functions are those that Ostro declares.
#define SAME(member, symbol, parameters) \
  static_assert(std::is_same_v<decltype(&symbol), decltype(CudaSlots::member)>);
OSTRO_CUDA_SLOTS(SAME)
#undef SAME
