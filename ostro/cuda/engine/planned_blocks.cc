#include "ostro/cuda/engine/planned_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ostro/base/check.h"
#include "ostro/cuda/engine/device_runner.h"

namespace ostro::cuda {
namespace {

constexpr uint64_t kFirstAddress = 1 << 20;
constexpr uint64_t kPlannedAlignment = 512;

class PlannedBlock final : public runtime::Block {
 public:
  PlannedBlock(runtime::Memory& memory, int64_t bytes, gpu::Address at)
      : Block(memory, bytes, nullptr), address(at) {}
  const gpu::Address address;
};

// Blocks without bytes. It counts what the memory that it stands for would take.
class PlannedMemory final : public runtime::Memory {
 public:
  explicit PlannedMemory(const runtime::Memory& real) : real_(real) {}

  std::string name() const override { return real_.name(); }
  int64_t taken(int64_t bytes) const override { return real_.taken(bytes); }
  runtime::MemoryUse use() const override { return {taken_, taken_}; }
  Result<std::shared_ptr<runtime::Block>> allocate(int64_t bytes) override {
    taken_ += taken(bytes);
    return std::shared_ptr<runtime::Block>(std::make_shared<PlannedBlock>(*this, bytes, place(bytes)));
  }
  Status write(runtime::Block&, int64_t, std::span<const std::byte>) override { return Status(); }
  Status read(const runtime::Block&, int64_t, std::span<std::byte> to) const override {
    std::fill(to.begin(), to.end(), std::byte{0});
    return Status();
  }
  // An address for that many bytes, which are not counted.
  gpu::Address place(int64_t bytes) {
    const gpu::Address at{next_};
    next_ += (static_cast<uint64_t>(bytes) / kPlannedAlignment + 1) * kPlannedAlignment;
    return at;
  }

 private:
  const runtime::Memory& real_;
  uint64_t next_ = kFirstAddress;
  int64_t taken_ = 0;
};

class PlannedCode final : public gpu::Code {
 public:
  Result<gpu::Kernel> kernel(const std::string&) const override { return gpu::Kernel{&handle_}; }

 private:
  mutable char handle_ = 0;
};

class PlannedEvent final : public gpu::Event {
 public:
  Status wait() override { return Status(); }
};

class PlannedDevice final : public gpu::Device {
 public:
  explicit PlannedDevice(gpu::Device& real)
      : limits_(real.limits()), memory_(real.memory()), code_(std::make_shared<PlannedCode>()) {}

  const gpu::DeviceLimits& limits() const override { return limits_; }
  PlannedMemory& memory() override { return memory_; }
  gpu::Address address(const runtime::Block& block) const override {
    const auto* planned = dynamic_cast<const PlannedBlock*>(&block);
    OSTRO_CHECK(planned != nullptr, "a block of {} was given to a plan", block.memory().name());
    return planned->address;
  }
  Result<std::shared_ptr<const gpu::Code>> load(const std::string&, const std::string&) override {
    return std::shared_ptr<const gpu::Code>(code_);
  }
  Status launch(gpu::Kernel, const gpu::LaunchShape&, std::span<const std::byte>, std::string_view) override {
    return Status();
  }
  Result<gpu::TileMap> tile_map(gpu::Address, int64_t, int64_t, int64_t) override { return gpu::TileMap{}; }
  Status copy(gpu::Address, gpu::Address, int64_t) override { return Status(); }
  Status write(gpu::Address, std::span<const std::byte>) override { return Status(); }
  Status read(gpu::Address, std::span<std::byte> to) override {
    std::fill(to.begin(), to.end(), std::byte{0});
    return Status();
  }
  Result<std::unique_ptr<gpu::Event>> record() override {
    return std::unique_ptr<gpu::Event>(std::make_unique<PlannedEvent>());
  }
  Status synchronise() override { return Status(); }

 private:
  const gpu::DeviceLimits limits_;
  PlannedMemory memory_;
  const std::shared_ptr<const PlannedCode> code_;
};

}  // namespace

Result<int64_t> planned_blocks(const compile::Module& module, const std::string& program,
                               const Kernels& kernels) {
  PlannedDevice device(kernels.device());
  Kernels planned(device, kernels.families(), kernels.width());
  const std::vector<gpu::Kernel> fused(module.nests.size());
  std::vector<std::byte> exchanged;
  const DeviceContext context{.program = program,
                              .module = &module,
                              .kernels = &planned,
                              .fused = &fused,
                              .fast_nests = kernels.fast(Fast::kReductions),
                              .host = &exchanged,
                              .planned = true};
  std::vector<std::shared_ptr<runtime::Block>> constants;
  ASSIGN_OR_RETURN(const auto runner, DeviceRunner::make(module.plan, context, "", constants));
  std::vector<gpu::Address> params, results;
  for (const ir::Shape& s : module.plan.params) params.push_back(device.memory().place(s.bytes()));
  for (const ir::Shape& s : module.plan.results) results.push_back(device.memory().place(s.bytes()));
  const gpu::Address arena = device.memory().place(module.plan.arena_bytes);
  try {
    RETURN_IF_ERROR(runner->run(std::span<const gpu::Address>(params), std::span<const gpu::Address>(results),
                                arena, runtime::RunContext{}));
  } catch (const ir::AttrError& e) {
    return invalid_argument(fmt::format("program {}: {}", program, e.message));
  }
  return device.memory().use().now;
}

}  // namespace ostro::cuda
