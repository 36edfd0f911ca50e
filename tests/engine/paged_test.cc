// A pool of pages is written in place where it is given away, and engines refuse places and pages outside of
// it.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "ostro/cpu/engine/engine.h"
#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/gpu/emulated/emulated_device.h"
#include "ostro/interp/engine/engine.h"
#include "paged_cases.h"

namespace ostro {
namespace {

TEST_CASE("a pool that is given away is written in place, and one that is kept stays as it was") {
  auto engine = cpu::make_cpu_engine({.threads = 2});
  REQUIRE(engine.ok());
  auto executable = (*engine)->compile(testing::small_cache({}), {.donate = {0}});
  REQUIRE(executable.ok());
  std::vector<runtime::Buffer> inputs = testing::cache_inputs({5, 300}, {0, 1, 2, 0}, {5, 44});
  const std::vector<runtime::Buffer> kept = inputs;
  auto apart = (*executable)->run(inputs);
  REQUIRE(apart.ok());
  const runtime::Buffer fresh = testing::cache_inputs({5, 300}, {0, 1, 2, 0}, {5, 44})[0];
  const auto same_bytes = [](const runtime::Buffer& a, const runtime::Buffer& b) {
    return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
  };
  CHECK(same_bytes(kept[0], fresh));
  CHECK(!same_bytes((*apart)[1], fresh));
  inputs = testing::cache_inputs({5, 300}, {0, 1, 2, 0}, {5, 44});
  const void* memory = inputs[0].bytes().data();
  auto in_place = (*executable)->run(std::move(inputs));
  REQUIRE(in_place.ok());
  CHECK((*in_place)[1].bytes().data() == memory);
  for (size_t i : {0, 1}) CHECK(same_bytes((*in_place)[i], (*apart)[i]));
  // Another page of the second row's gives other bits.
  auto other = (*executable)->run(testing::cache_inputs({5, 300}, {0, 1, 1, 0}, {5, 44}));
  REQUIRE(other.ok());
  CHECK(!same_bytes((*other)[0], (*apart)[0]));
}

TEST_CASE("a device writes a pool in place that is given away") {
  auto device = gpu::emulated_device({});
  REQUIRE(device.ok());
  const auto engine = cuda::make_device_engine(**device);
  auto executable = engine->compile(testing::small_cache({}), {.donate = {0}});
  REQUIRE_MESSAGE(executable.ok(), executable.error().message());
  const auto on_device = [&] {
    return runtime::all_to(testing::cache_inputs({5, 300}, {0, 1, 2, 0}, {5, 44}), (*device)->memory())
        .value();
  };
  const auto bytes = [](const runtime::Buffer& b) {
    const runtime::Buffer host = b.to_host().value();
    return std::vector<std::byte>(host.bytes().begin(), host.bytes().end());
  };
  std::vector<runtime::Buffer> inputs = on_device();
  const std::vector<runtime::Buffer> kept = inputs;  // so it may not be overwritten
  const auto apart = (*executable)->run(inputs);
  REQUIRE_MESSAGE(apart.ok(), apart.error().message());
  CHECK(bytes(kept[0]) == bytes(on_device()[0]));
  CHECK(bytes((*apart)[1]) != bytes(kept[0]));
  inputs = on_device();
  const runtime::Block* memory = &inputs[0].block();
  const auto in_place = (*executable)->run(std::move(inputs));
  REQUIRE(in_place.ok());
  CHECK(&(*in_place)[1].block() == memory);
  for (size_t i : {0, 1}) CHECK(bytes((*in_place)[i]) == bytes((*apart)[i]));
}

TEST_CASE("engines name the row of a place, a page and a position outside, as the interpreter does") {
  auto compiled = cpu::make_cpu_engine({.threads = 1});
  auto device = gpu::emulated_device({});
  REQUIRE((compiled.ok() && device.ok()));
  const auto on_device = cuda::make_device_engine(**device);
  const auto interpreter = interp::make_interpreter();
  const auto refused = [&](const char* words, const std::vector<int32_t>& place,
                           const std::vector<int32_t>& table, const std::vector<int32_t>& position) {
    for (runtime::Engine* engine : {compiled->get(), on_device.get(), interpreter.get()}) {
      auto executable = engine->compile(testing::small_cache({}), {});
      REQUIRE_MESSAGE(executable.ok(), executable.error().message());
      const auto out = (*executable)->run(testing::cache_inputs(place, table, position));
      REQUIRE(!out.ok());
      CHECK(out.error().message().find(words) != std::string::npos);
    }
  };
  refused("row 1 has place 384, and the pool has places 0 to 383", {0, 384}, {0, 0, 0, 0}, {0, 0});
  refused("row 1 has place 7, as a row before it has", {7, 7}, {0, 0, 0, 0}, {0, 0});
  refused("entry 1 of row 1 names page 3, and the pool has pages 0 to 2", {0, 1}, {0, 0, 0, 3}, {0, 128});
  refused("row 0 has position 256, and its 2 pages hold positions 0 to 255", {0, 1}, {0, 0, 0, 0}, {256, 0});
}

}  // namespace
}  // namespace ostro
