#include "ostro/gpu/driver/gpu.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "ostro/base/check.h"
#include "ostro/base/object_cache.h"
#include "ostro/gpu/driver/code_cache.h"
#include "ostro/gpu/driver/driver.h"
#include "ostro/gpu/driver/gpu_memory.h"
#include "ostro/gpu/driver/nvrtc.h"

namespace ostro::gpu {
namespace {

// Hopper, whose tensor cores were measured to have the rule of N23, and which alone has wgmma.
constexpr int kHopper = 90;
constexpr unsigned kTileBytes = 128;  // of a row

struct GpuKernel {
  void* function = nullptr;
  std::string name;
  std::mutex mutex;
  // Dynamic shared memory that launches may use. All of it is asked for: what needs no asking is 48 KiB less
  // the kernel's static shared memory.
  int64_t dynamic_bytes = 0;
};

class GpuCode final : public Code {
 public:
  GpuCode(GpuQueue& queue, std::string name, void* module)
      : queue_(queue), name_(std::move(name)), module_(module) {}

  Result<Kernel> kernel(const std::string& name) const override {
    RETURN_IF_ERROR(queue_.enter());
    const std::lock_guard lock(mutex_);
    GpuKernel& kernel = kernels_[name];
    if (kernel.function == nullptr) {
      const int result = queue_.cuda().module_function(&kernel.function, module_, name.c_str());
      if (result == kSymbolNotFound)
        return not_found(fmt::format("device text {} has no kernel {}", name_, name));
      RETURN_IF_ERROR(queue_.check(result, "finding a kernel", name_ + " " + name));
      kernel.name = name_ + " " + name;
    }
    return Kernel{&kernel};
  }

 private:
  GpuQueue& queue_;
  const std::string name_;
  void* module_;  // stays loaded as long as the process, as the code does
  mutable std::mutex mutex_;
  mutable std::map<std::string, GpuKernel> kernels_;
};

class GpuEvent final : public Event {
 public:
  GpuEvent(GpuQueue& queue, void* event) : queue_(queue), event_(event), launches_(queue.launched()) {}
  ~GpuEvent() override {
    if (!queue_.ended()) (void)queue_.cuda().destroy_event(event_);
  }
  Status wait() override {
    RETURN_IF_ERROR(queue_.enter());
    RETURN_IF_ERROR(queue_.check(queue_.cuda().wait_event(event_), "waiting for an event"));
    queue_.note_done(launches_);
    return Status();
  }

 private:
  GpuQueue& queue_;
  void* event_;
  const uint64_t launches_;  // that were begun before it
};

class Gpu final : public Device {
 public:
  Gpu(std::unique_ptr<GpuQueue> queue, std::unique_ptr<Staging> staging, std::shared_ptr<const Nvrtc> nvrtc,
      const Driver& driver)
      : driver_(driver),
        queue_(std::move(queue)),
        staging_(std::move(staging)),
        memory_(*queue_, *staging_),
        nvrtc_(std::move(nvrtc)),
        cache_(default_cache_dir()) {
    const GpuFacts& facts = queue_->facts();
    limits_ = {.name = facts.name,
               .compute_capability = facts.compute_capability,
               .multiprocessors = facts.multiprocessors,
               .memory_bytes = facts.memory_bytes,
               .block_shared_bytes = facts.block_shared_bytes,
               .tensor_rule = facts.compute_capability == kHopper,
               .warpgroups = facts.compute_capability == kHopper};
    options_ = Nvrtc::options(Nvrtc::architecture(facts.compute_capability));
  }

  const DeviceLimits& limits() const override { return limits_; }
  runtime::Memory& memory() override { return memory_; }
  Address address(const runtime::Block& block) const override { return {memory_.address(block)}; }

  Result<std::shared_ptr<const Code>> load(const std::string& name, const std::string& text) override {
    const std::string key =
        CodeCache::key(nvrtc_->identity(), fmt::format("{}", fmt::join(options_, " ")), text);
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = loaded_.find(key); found != loaded_.end()) return found->second;
    }
    // Without the lock: several texts may be compiled at a time.
    std::optional<std::string> code = cache_.find(key);
    if (!code) {
      ASSIGN_OR_RETURN(code, nvrtc_->compile(name, text, options_));
      cache_.keep(key, *code);
    }
    RETURN_IF_ERROR(queue_->enter());
    void* module = nullptr;
    RETURN_IF_ERROR(
        queue_->check(queue_->cuda().load_module(&module, code->data()), "loading compiled text", name));
    const std::lock_guard lock(mutex_);
    return loaded_.emplace(key, std::make_shared<GpuCode>(*queue_, name, module)).first->second;
  }

  Status launch(Kernel kernel, const LaunchShape& shape, std::span<const std::byte> argument,
                std::string_view place) override {
    OSTRO_CHECK(kernel.handle != nullptr, "a launch without a kernel, of {}", place);
    auto& ours = *static_cast<GpuKernel*>(kernel.handle);
    OSTRO_CHECK(shape.threads > 0 && shape.threads <= 1024 && shape.threads % 32 == 0,
                "{} threads a block of {}", shape.threads, place);
    OSTRO_CHECK(shape.x < int64_t{1} << 31 && shape.y < 65536 && shape.z < 65536, "{} x {} x {} blocks of {}",
                shape.x, shape.y, shape.z, place);
    OSTRO_CHECK(argument.size() <= 4096, "{} bytes of arguments of {}", argument.size(), place);
    if (shape.x == 0 || shape.y == 0 || shape.z == 0) return Status();
    RETURN_IF_ERROR(queue_->enter());
    RETURN_IF_ERROR(allow_shared(ours, shape.shared_bytes, place));
    size_t bytes = argument.size();
    void* extra[] = {kArgumentBytes, const_cast<std::byte*>(argument.data()), kArgumentSize, &bytes,
                     kArgumentEnd};
    queue_->note_launch(place);
    const int result =
        queue_->cuda().launch(ours.function, static_cast<unsigned>(shape.x), static_cast<unsigned>(shape.y),
                              static_cast<unsigned>(shape.z), static_cast<unsigned>(shape.threads), 1, 1,
                              static_cast<unsigned>(shape.shared_bytes), queue_->stream(), nullptr, extra);
    return result == 0 ? Status() : queue_->check(result, "launch of " + ours.name, place);
  }

  Result<TileMap> tile_map(Address at, int64_t rows, int64_t row_bytes, int64_t tile_rows) override {
    if (!limits_.warpgroups) return unsupported(fmt::format("{} copies no tiles", limits_.name));
    RETURN_IF_ERROR(queue_->enter());
    const uint64_t sizes[] = {static_cast<uint64_t>(row_bytes), static_cast<uint64_t>(rows)},
                   strides[] = {sizes[0]};
    const unsigned box[] = {kTileBytes, static_cast<unsigned>(tile_rows)}, steps[] = {1, 1};
    alignas(64) TileMap map;
    RETURN_IF_ERROR(queue_->check(
        queue_->cuda().encode_tiles(map.bytes.data(), kTileOfBytes, 2, reinterpret_cast<void*>(at.at), sizes,
                                    strides, box, steps, kTileInOrder, kTileSwizzled128, kTileThroughL2,
                                    kTileEndsInZeros),
        "describing tiles"));
    return map;
  }
  Status copy(Address to, Address from, int64_t bytes) override {
    if (bytes == 0) return Status();
    RETURN_IF_ERROR(queue_->enter());
    return queue_->check(
        queue_->cuda().copy_inside(to.at, from.at, static_cast<size_t>(bytes), queue_->stream()),
        "a copy inside it");
  }
  Status write(Address to, std::span<const std::byte> from) override { return staging_->write(to.at, from); }
  Status read(Address from, std::span<std::byte> to) override { return staging_->read(from.at, to); }

  void keep_note(const std::string& key, const std::string& text) override {
    cache_.keep(note_key(key), text);
  }
  std::optional<std::string> find_note(const std::string& key) override { return cache_.find(note_key(key)); }

  Result<std::unique_ptr<Event>> record() override {
    RETURN_IF_ERROR(queue_->enter());
    void* event = nullptr;
    RETURN_IF_ERROR(queue_->check(queue_->cuda().create_event(&event, kEventWithoutTime), "making an event"));
    auto out = std::make_unique<GpuEvent>(*queue_, event);
    RETURN_IF_ERROR(queue_->check(queue_->cuda().record_event(event, queue_->stream()), "marking its queue"));
    return std::unique_ptr<Event>(std::move(out));
  }
  Status synchronise() override { return queue_->wait("waiting for its work"); }

 private:
  std::string note_key(const std::string& key) const {
    return CodeCache::key(
        nvrtc_->identity(),
        fmt::format("note {} {} {}", limits_.name, driver_.version(), driver_.cuda_version()), key);
  }
  Status allow_shared(GpuKernel& kernel, int64_t bytes, std::string_view place) {
    const std::lock_guard lock(kernel.mutex);
    if (bytes <= kernel.dynamic_bytes) return Status();
    RETURN_IF_ERROR(queue_->check(
        queue_->cuda().set_function_attribute(kernel.function, kDynamicSharedBytes, static_cast<int>(bytes)),
        fmt::format("taking {} bytes of shared memory for {}", bytes, kernel.name), place));
    kernel.dynamic_bytes = bytes;
    return Status();
  }

  const Driver& driver_;
  std::unique_ptr<GpuQueue> queue_;
  std::unique_ptr<Staging> staging_;
  GpuMemory memory_;
  std::shared_ptr<const Nvrtc> nvrtc_;
  CodeCache cache_;
  DeviceLimits limits_;
  std::vector<std::string> options_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Code>> loaded_;  // by key
};

Result<std::unique_ptr<Gpu>> make_gpu(int ordinal) {
  ASSIGN_OR_RETURN(const Driver* driver, Driver::open());
  const auto count = static_cast<int>(driver->gpus().size());
  if (ordinal < 0 || ordinal >= count)
    return unsupported(fmt::format(
        "there is no cuda:{}: this process sees {} GPU{}, cuda:0{}; ostro devices lists them", ordinal, count,
        count == 1 ? "" : "s", count == 1 ? "" : fmt::format(" to cuda:{}", count - 1)));
  const GpuFacts& facts = driver->gpus()[static_cast<size_t>(ordinal)];
  RETURN_IF_ERROR(check_capability(facts));
  ASSIGN_OR_RETURN(auto nvrtc, Nvrtc::open(driver->path(), driver->cuda_version(), facts.compute_capability));
  ASSIGN_OR_RETURN(auto queue, GpuQueue::open(*driver, facts));
  ASSIGN_OR_RETURN(auto staging, Staging::make(*queue));
  return std::make_unique<Gpu>(std::move(queue), std::move(staging), std::move(nvrtc), *driver);
}

}  // namespace

Result<Device*> open_gpu(int ordinal) {
  static std::mutex mutex;
  static auto* const kOpen = new std::map<int, Gpu*>();  // their memory is referred to until the process ends
  const std::lock_guard lock(mutex);
  if (const auto found = kOpen->find(ordinal); found != kOpen->end())
    return static_cast<Device*>(found->second);
  ASSIGN_OR_RETURN(std::unique_ptr<Gpu> gpu, make_gpu(ordinal));
  return static_cast<Device*>((*kOpen)[ordinal] = gpu.release());
}

}  // namespace ostro::gpu
