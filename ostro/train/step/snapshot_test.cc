// Whether a checkpoint's arrays may stay on a device while steps go on.
#include "ostro/train/step/snapshot.h"

#include <doctest/doctest.h>

#include <memory>

namespace ostro::train {
namespace {

// A memory of a device that says what a test tells it to.
class ToldMemory final : public runtime::Memory {
 public:
  std::string name() const override { return "told"; }
  Result<std::shared_ptr<runtime::Block>> allocate(int64_t bytes) override {
    return std::make_shared<runtime::Block>(*this, bytes, nullptr);
  }
  Status write(runtime::Block&, int64_t, std::span<const std::byte>) override { return {}; }
  Status read(const runtime::Block&, int64_t, std::span<std::byte>) const override { return {}; }
  AvailableMemory available() const override { return {.bytes = free, .source = "told"}; }
  runtime::MemoryUse use() const override { return {.now = now, .peak = 1 << 20}; }
  int64_t taken(int64_t bytes) const override { return bytes + 400; }
  int64_t now = 0, free = 0;
};

TEST_CASE("arrays stay on a device only when there is room for new ones and for all that was planned") {
  static auto* const memory = new ToldMemory();  // blocks refer to it
  const ir::Shape shape{ir::DType::f32, {{"embed", 300}}};
  constexpr int64_t kArray = 1600;
  const auto far = [&] { return runtime::Buffer::allocate(shape, *memory).value(); };
  const auto near = runtime::Buffer::zeros(shape);
  constexpr int64_t kPlanned = 16000 - 3 * kArray;
  // Whether the least room is `least`.
  const auto needs = [&](const State& state, int64_t now, int64_t least) {
    memory->now = now;
    memory->free = least;
    const bool fits = fits_beside(state, *memory, kPlanned);
    memory->free = least - 1;
    return fits && !fits_beside(state, *memory, kPlanned);
  };
  const State whole{.step = 1, .params = {far()}, .optimizer = {far(), far()}};
  constexpr int64_t kWithSpare = 16000 + 1000;
  CHECK(needs(whole, 3 * kArray + 2000, kWithSpare - 3 * kArray - 2000));
  // An evaluation has given back what programs of steps take again.
  CHECK(needs(whole, 3 * kArray, kWithSpare - 3 * kArray));
  // Before the first update the optimizer's arrays are on the host, and come to the device with it.
  const State first{.step = 1, .params = {far()}, .optimizer = {near, near}};
  CHECK(needs(first, kArray, kPlanned + kArray + (kPlanned + kArray) / 16 - kArray));
  // Nothing is on a device.
  memory->free = int64_t{1} << 40;
  CHECK(!fits_beside({.step = 1, .params = {near}, .optimizer = {near, near}}, *memory, kPlanned));
}

}  // namespace
}  // namespace ostro::train
