#include "ostro/gpu/emulated/emulated_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "ostro/base/check.h"
#include "ostro/gpu/emulated/emulated_memory.h"
#include "ostro/gpu/emulated/fibres.h"
#include "ostro/gpu/emulated/host_compiler.h"
#include "ostro/numerics/fp_env.h"

namespace ostro::gpu {
namespace {

constexpr int64_t kSharedBytes = 227 << 10, kStaticSharedBytes = 48 << 10, kArgumentBytes = 4096;
constexpr int kSharedPoison = 0xb5;
constexpr int64_t kTileAlignment = 1024;

struct EmulatedKernel {
  std::string name;
  void (*run)(const void* argument, int backwards) = nullptr;
  bool waits = false;
  OstroBlock** block = nullptr;  // where the text looks for its block
};

class EmulatedCode final : public Code {
 public:
  EmulatedCode(std::string name, std::shared_ptr<SharedObject> object)
      : name_(std::move(name)), object_(std::move(object)) {}

  Result<Kernel> kernel(const std::string& name) const override {
    const std::lock_guard lock(mutex_);
    EmulatedKernel& k = kernels_[name];
    if (k.run == nullptr) {
      const auto* waits = static_cast<const int*>(object_->symbol(name + "_waits"));
      if (waits == nullptr) return not_found(fmt::format("device text {} has no kernel {}", name_, name));
      k = {name, reinterpret_cast<void (*)(const void*, int)>(object_->symbol(name)), *waits != 0,
           static_cast<OstroBlock**>(object_->symbol("ostro_block"))};
    }
    return Kernel{&k};
  }

 private:
  const std::string name_;
  const std::shared_ptr<SharedObject> object_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, EmulatedKernel> kernels_;
};

class EmulatedEvent final : public Event {
 public:
  Status wait() override { return Status(); }  // no call returns before its work is done
};

class EmulatedDevice final : public Device {
 public:
  EmulatedDevice(EmulationOptions options, HostCompiler compiler)
      : options_(std::move(options)),
        compiler_(std::move(compiler)),
        memory_(options_.memory_bytes),
        fibres_(options_.seed) {
    limits_ = {.name = "emulated device",
               .compute_capability = 80,
               .multiprocessors = 4,
               .memory_bytes = options_.memory_bytes,
               .block_shared_bytes = kSharedBytes,
               .tensor_rule = true,
               .warpgroups = true};
    block_.barrier = [](int line) { running_->barrier(line); };
    block_.shared = [](const void* key, unsigned long long bytes) { return running_->shared(key, bytes); };
    block_.exchange = [](const unsigned long long* given, int count) {
      return running_->exchange(given, count);
    };
    block_.pause = [](int line) { running_->pause(line); };
    block_.fail = [](const char* why) {
      if (running_->error_.empty()) running_->error_ = why;
    };
    block_.base = reinterpret_cast<unsigned char*>(shared_);
  }

  const DeviceLimits& limits() const override { return limits_; }
  runtime::Memory& memory() override { return memory_; }
  Address address(const runtime::Block& block) const override { return EmulatedMemory::address(block); }

  Result<std::shared_ptr<const Code>> load(const std::string& name, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    if (const auto it = loaded_.find(text); it != loaded_.end()) return it->second;
    std::string changed = text;
    for (const EmulationOptions::Change& change : options_.changes)
      for (size_t at = 0; (at = changed.find(change.from, at)) != std::string::npos; at += change.to.size()) {
        changed.replace(at, change.from.size(), change.to);
        ++changes_;
      }
    ASSIGN_OR_RETURN(auto object, compiler_.compile(name, changed));
    std::shared_ptr<const Code> code = std::make_shared<EmulatedCode>(name, std::move(object));
    loaded_[text] = code;
    return code;
  }

  Status launch(Kernel kernel, const LaunchShape& shape, std::span<const std::byte> argument,
                std::string_view place) override {
    const auto& k = *static_cast<const EmulatedKernel*>(kernel.handle);
    // Two devices may run the same object, in which the place of the block is one variable.
    static std::mutex turns;
    const std::scoped_lock lock(mutex_, turns);
    const auto wrong = [&](std::string_view why) {
      return Error(ErrorCode::kInternal, fmt::format("{}: kernel {}: {}", place, k.name, why));
    };
    if (shape.threads < 32 || shape.threads > 1024 || shape.threads % 32 != 0)
      return wrong(fmt::format("{} threads; a block has a multiple of 32, at most 1024", shape.threads));
    if (shape.x < 1 || shape.x > 2147483647 || shape.y < 1 || shape.y > 65535 || shape.z < 1 ||
        shape.z > 65535)
      return wrong(fmt::format("{} x {} x {} blocks; the limits are 2147483647 x 65535 x 65535", shape.x,
                               shape.y, shape.z));
    if (shape.shared_bytes > kSharedBytes)
      return wrong(fmt::format("{} bytes of shared memory", shape.shared_bytes));
    if (static_cast<int64_t>(argument.size()) > kArgumentBytes)
      return wrong(fmt::format("an argument of {} bytes; the limit is {}", argument.size(), kArgumentBytes));
    const numerics::HostArithmetic environment;
    running_ = this;
    waits_ = k.waits;
    error_.clear();
    *k.block = &block_;
    block_.threads = static_cast<unsigned>(shape.threads);
    // A copy, behind which lies poison.
    alignas(64) std::byte copy[kArgumentBytes];
    std::memset(copy, kSharedPoison, sizeof(copy));
    std::memcpy(copy, argument.data(), argument.size());
    const bool backwards = fibres_.next() % 2 == 0;
    const int64_t blocks = shape.x * shape.y * shape.z;
    for (int64_t i = 0; i < blocks && error_.empty(); ++i) {
      const int64_t number = backwards ? blocks - 1 - i : i;
      block_.x = number % shape.x;
      block_.y = number / shape.x % shape.y;
      block_.z = number / shape.x / shape.y;
      run_block(k, shape, copy, backwards);
    }
    if (error_.empty()) error_ = memory_.damage();
    if (!error_.empty()) return wrong(error_);
    return Status();
  }

  Result<TileMap> tile_map(Address at, int64_t rows, int64_t row_bytes, int64_t tile_rows) override {
    return emulated_tile_map(at, rows, row_bytes, tile_rows);
  }
  Status copy(Address to, Address from, int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (bytes == 0) return Status();
    OSTRO_CHECK(memory_.holds(to, bytes) && memory_.holds(from, bytes),
                "{} bytes are copied outside of blocks", bytes);
    std::memcpy(reinterpret_cast<void*>(to.at), reinterpret_cast<const void*>(from.at),
                static_cast<size_t>(bytes));
    return Status();
  }
  Status write(Address to, std::span<const std::byte> from) override {
    const std::lock_guard lock(mutex_);
    if (from.empty()) return Status();
    OSTRO_CHECK(memory_.holds(to, static_cast<int64_t>(from.size())),
                "{} bytes are written outside of blocks", from.size());
    std::memcpy(reinterpret_cast<void*>(to.at), from.data(), from.size());
    return Status();
  }
  Status read(Address from, std::span<std::byte> to) override {
    const std::lock_guard lock(mutex_);
    if (to.empty()) return Status();
    OSTRO_CHECK(memory_.holds(from, static_cast<int64_t>(to.size())), "{} bytes are read outside of blocks",
                to.size());
    std::memcpy(to.data(), reinterpret_cast<const void*>(from.at), to.size());
    return Status();
  }

  Result<std::unique_ptr<Event>> record() override {
    return std::unique_ptr<Event>(std::make_unique<EmulatedEvent>());
  }
  Status synchronise() override { return Status(); }

  int64_t changes() const { return changes_; }

 private:
  void run_block(const EmulatedKernel& k, const LaunchShape& shape, const std::byte* argument,
                 bool backwards) {
    const int64_t dirty = std::max(shared_used_, shape.shared_bytes) + 64;
    std::memset(shared_, kSharedPoison, static_cast<size_t>(std::min<int64_t>(dirty, sizeof(shared_))));
    block_.dynamic = shared_;
    static unsigned long long blocks =
        0;  // of all devices, which run in turns: they share texts and what these keep
    block_.number = ++blocks;
    shared_used_ = (shape.shared_bytes + 15) / 16 * 16;
    static_used_ = 0;
    arrays_.clear();
    if (!k.waits) {
      k.run(argument, backwards ? 1 : 0);
      return;
    }
    std::string wrong = fibres_.run(block_, [&] { k.run(argument, 0); });
    if (error_.empty()) error_ = std::move(wrong);
  }

  void barrier(int line) {
    if (!waits_) {
      if (error_.empty())
        error_ = fmt::format("a barrier in line {} of a KERNEL; it must be a BLOCK_KERNEL", line);
      return;
    }
    fibres_.barrier(line);
  }
  void pause(int line) {
    if (waits_) {
      fibres_.pause(line);
    } else if (error_.empty()) {
      error_ = fmt::format("line {} of a KERNEL waits; it must be a BLOCK_KERNEL", line);
    }
  }
  const unsigned long long* exchange(const unsigned long long* given, int count) {
    if (waits_) return fibres_.exchange(given, count);
    if (error_.empty()) error_ = "an exchange of a warp in a KERNEL; it must be a BLOCK_KERNEL";
    static constexpr unsigned long long kNothing[32 * Fibres::kMostGiven] = {};
    return kNothing;
  }
  // The array of this key, which the first thread of the block that asks for it gets.
  void* shared(const void* key, unsigned long long bytes) {
    for (const auto& [known, array] : arrays_)
      if (known == key) return array;
    std::byte* array = shared_ + shared_used_;
    const int64_t taken = (static_cast<int64_t>(bytes) + 15) / 16 * 16;
    if (static_used_ + taken > kStaticSharedBytes || shared_used_ + taken > kSharedBytes) {
      if (error_.empty())
        error_ = fmt::format("shared memory of {} bytes beside {}; a block has {}, of them {} in SHARED",
                             taken, shared_used_, kSharedBytes, kStaticSharedBytes);
      array = shared_;
    } else {
      shared_used_ += taken;
      static_used_ += taken;
    }
    arrays_.emplace_back(key, array);
    return array;
  }

  static thread_local EmulatedDevice* running_;

  const EmulationOptions options_;
  const HostCompiler compiler_;
  DeviceLimits limits_;
  EmulatedMemory memory_;
  std::mutex mutex_;  // of everything below
  std::map<std::string, std::shared_ptr<const Code>> loaded_;
  Fibres fibres_;
  OstroBlock block_;
  alignas(kTileAlignment) std::byte shared_[kSharedBytes + 64];
  int64_t shared_used_ = kSharedBytes, static_used_ = 0;
  std::vector<std::pair<const void*, void*>> arrays_;
  bool waits_ = false;
  std::string error_;
  int64_t changes_ = 0;
};

thread_local EmulatedDevice* EmulatedDevice::running_ = nullptr;

}  // namespace

Result<Device*> emulated_device(const EmulationOptions& options) {
  ASSIGN_OR_RETURN(HostCompiler compiler, HostCompiler::find());
  return static_cast<Device*>(new EmulatedDevice(options, std::move(compiler)));
}

TileMap emulated_tile_map(Address at, int64_t rows, int64_t row_bytes, int64_t tile_rows) {
  OSTRO_CHECK(at.at % 16 == 0 && row_bytes % 16 == 0 && rows > 0 && row_bytes > 0 && tile_rows > 0 &&
                  tile_rows <= 256,
              "a map of tiles of {} rows of {} rows of {} bytes", tile_rows, rows, row_bytes);
  const uint64_t words[] = {at.at, static_cast<uint64_t>(row_bytes), static_cast<uint64_t>(rows),
                            static_cast<uint64_t>(tile_rows)};
  TileMap out;
  std::memcpy(out.bytes.data(), words, sizeof words);
  return out;
}

int64_t changes_made(const Device& device) {
  const auto* emulated = dynamic_cast<const EmulatedDevice*>(&device);
  OSTRO_CHECK(emulated != nullptr, "{} is not emulated", device.limits().name);
  return emulated->changes();
}

}  // namespace ostro::gpu
