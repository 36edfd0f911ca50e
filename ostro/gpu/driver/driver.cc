#include "ostro/gpu/driver/driver.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <utility>

#include "ostro/gpu/driver/library.h"

namespace ostro::gpu {
namespace {

// On WSL the driver's folder is not among the loader's.
constexpr const char* kNames[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
constexpr const char* kWithoutGpu = "; --device cpu needs none of it, and gives the same bits";

std::string driver_version_text() {
  std::ifstream in("/sys/module/nvidia/version");
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

std::string cuda_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }
std::string capability_text(int capability) { return fmt::format("{}.{}", capability / 10, capability % 10); }

Status check_capability(const GpuFacts& facts) {
  if (facts.compute_capability >= kOldestCapability) return Status();
  return unsupported(
      fmt::format("cuda:{} ({}) has compute capability {}; Ostro needs {} or newer (T4, RTX 20 and later){}",
                  facts.ordinal, facts.name, capability_text(facts.compute_capability),
                  capability_text(kOldestCapability), kWithoutGpu));
}

bool ends_the_device(int result) {
  switch (result) {
    case kEccUncorrectable:
    case kNvlinkUncorrectable:
    case kContained:
    case kIllegalAddress:
    case kLaunchTimeout:
    case kContextIsDestroyed:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
    case kUnknown: return true;
    default: return false;
  }
}

Result<const Driver*> Driver::open() {
  static const Result<const Driver*> kDriver = open_now();
  return kDriver;
}

Result<const Driver*> Driver::open_now() {
  Result<Library<CudaSlots>> library = not_found("");
  std::string why;
  for (const char* name : kNames) {
    library = open_cuda(name);
    if (library.ok()) break;
    if (library.error().code() == ErrorCode::kUnsupported)
      return unsupported(
          fmt::format("the NVIDIA driver is too old: {}; Ostro needs CUDA {}, driver 525 or newer: install a "
                      "newer driver{}",
                      library.error().message(), cuda_text(kOldestCuda), kWithoutGpu));
    if (why.empty()) why = library.error().message();
  }
  if (!library.ok())
    return unsupported(
        fmt::format("no NVIDIA driver: {}; install it (Debian and Ubuntu: apt install nvidia-driver; in a "
                    "container: start it with --gpus all){}",
                    why, kWithoutGpu));
  auto driver = std::make_unique<Driver>();
  driver->slots_ = library->slots;
  driver->path_ = library->path;
  driver->version_ = driver_version_text();
  const CudaSlots& cuda = driver->slots_;
  RETURN_IF_ERROR(driver->check(cuda.driver_version(&driver->cuda_version_), "the NVIDIA driver's version"));
  if (driver->cuda_version_ < kOldestCuda)
    return unsupported(
        fmt::format("the NVIDIA driver{}{} is too old: it runs CUDA {}; Ostro needs CUDA {}, driver 525 or "
                    "newer: install a newer driver{}",
                    driver->version_.empty() ? "" : " ", driver->version_, cuda_text(driver->cuda_version_),
                    cuda_text(kOldestCuda), kWithoutGpu));
  const int started = cuda.init(0);
  int count = 0;
  if (started != kNoDevice) {
    RETURN_IF_ERROR(driver->check(started, fmt::format("starting the NVIDIA driver {}", driver->path_)));
    RETURN_IF_ERROR(driver->check(cuda.device_count(&count), "counting GPUs"));
  }
  if (count == 0)
    return unsupported(
        fmt::format("the NVIDIA driver {} runs, but this process sees no GPU; CUDA_VISIBLE_DEVICES may hide "
                    "them, and a container needs --gpus all{}",
                    driver->path_, kWithoutGpu));
  for (int i = 0; i < count; ++i) {
    GpuFacts facts{.ordinal = i};
    const std::string doing = fmt::format("cuda:{}: asking what it is", i);
    int device = 0;
    RETURN_IF_ERROR(driver->check(cuda.device(&device, i), doing));
    char name[256] = {};
    RETURN_IF_ERROR(driver->check(cuda.device_name(name, sizeof name - 1, device), doing));
    facts.name = name;
    size_t bytes = 0;
    RETURN_IF_ERROR(driver->check(cuda.device_memory(&bytes, device), doing));
    facts.memory_bytes = static_cast<int64_t>(bytes);
    int major = 0, minor = 0, shared = 0;
    for (const auto& [attribute, value] :
         {std::pair(kCapabilityMajor, &major), std::pair(kCapabilityMinor, &minor),
          std::pair(kMultiprocessors, &facts.multiprocessors), std::pair(kMostSharedBytes, &shared)})
      RETURN_IF_ERROR(driver->check(cuda.device_attribute(value, attribute, device), doing));
    facts.compute_capability = 10 * major + minor;
    facts.block_shared_bytes = shared;
    driver->gpus_.push_back(facts);
  }
  return driver.release();  // lives as long as the library, until the process ends
}

Result<int64_t> Driver::free_memory(int ordinal) const {
  const std::string doing = fmt::format("cuda:{}: asking for its free memory", ordinal);
  int device = 0;
  void* context = nullptr;
  RETURN_IF_ERROR(check(slots_.device(&device, ordinal), doing));
  RETURN_IF_ERROR(check(slots_.retain_context(&context, device), doing));
  size_t free = 0, total = 0;
  Status asked = check(slots_.set_context(context), doing);
  if (asked.ok()) asked = check(slots_.memory_info(&free, &total), doing);
  const Status left = check(slots_.set_context(nullptr), doing);
  const Status released = check(slots_.release_context(device), doing);
  RETURN_IF_ERROR(asked);
  RETURN_IF_ERROR(left);
  RETURN_IF_ERROR(released);
  return static_cast<int64_t>(free);
}

Status Driver::check(int result, const std::string& doing) const {
  return result == 0 ? Status() : Status(error(result, doing));
}

Error Driver::error(int result, const std::string& doing) const {
  const char *name = nullptr, *text = nullptr;
  if (slots_.error_name(result, &name) != 0 || name == nullptr) name = "an unknown error";
  if (slots_.error_text(result, &text) != 0 || text == nullptr) text = "no description";
  const std::string what = fmt::format("{}: {} ({}, {})", doing, text, name, result);
  switch (result) {
    case kDeviceUnavailable:
      return busy(fmt::format(
          "{}: another process has this GPU for itself (nvidia-smi names it); end that process, choose "
          "another GPU with --device cuda:N, or let an administrator share it: nvidia-smi -c DEFAULT",
          what));
    case kOutOfMemory:
      return device_error(
          fmt::format("{}: the GPU's memory is full (nvidia-smi names the processes that use it)", what));
    case kStubLibrary:
      return unsupported(
          fmt::format("{}: {} is the toolkit's stand-in for linking, not the driver; install the driver, and "
                      "take the toolkit's stubs out of LD_LIBRARY_PATH{}",
                      what, path_, kWithoutGpu));
    case kSystemDriverMismatch:
    case kSystemNotReady:
      return unsupported(
          fmt::format("{}: libcuda and the kernel's module are of different versions, or a service of the "
                      "machine does not run; restart the machine{}",
                      what, kWithoutGpu));
    case kInvalidImage:
    case kNoBinaryForGpu:
      return device_error(
          fmt::format("{}: the compiled text does not fit this GPU; remove the folder cuda of the cache "
                      "(OSTRO_CACHE_DIR) and update the driver",
                      what));
    default: break;
  }
  if (ends_the_device(result))
    return device_error(fmt::format(
        "{}: this process can use the GPU no more. What was saved is whole: the same command goes on "
        "from the newest checkpoint, on this GPU, another one or the CPU (--device cpu), with the "
        "same hash. If it happens again, look at the GPU's log: dmesg | grep Xid",
        what));
  return device_error(what);
}

}  // namespace ostro::gpu
