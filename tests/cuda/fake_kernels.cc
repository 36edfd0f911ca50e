#include "tests/cuda/fake_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ostro/gpu/emulated/emulated_device.h"

namespace ostro::test {
namespace {

constexpr const char* kMagic = "FAKE CUBIN ";

std::string& failure() {
  static auto* const text = new std::string("told by the fake driver");
  return *text;
}

// Runs all other text: its kernels follow the addresses that they are given, which are the host's here.
Result<gpu::Device*>& device() {
  static auto* const kDevice = new Result<gpu::Device*>(gpu::emulated_device());
  return *kDevice;
}

std::shared_ptr<const gpu::Code> emulated(const std::string& text) {
  if (!device().ok()) {
    failure() = device().error().message();
    return nullptr;
  }
  auto code = (*device())->load("text of the fake driver", text);
  if (!code.ok()) failure() = code.error().message();
  return code.ok() ? *code : nullptr;
}

FakeKernel own_kernel(const std::string& name) {
  if (name != "add" && name != "check") return {};
  return [adds = name == "add"](const std::vector<std::byte>& argument, const FakeShape&) {
    FakeAdd a;
    if (argument.size() != sizeof a) return false;
    std::memcpy(&a, argument.data(), sizeof a);
    auto* numbers = reinterpret_cast<uint32_t*>(a.at);
    const auto value = static_cast<uint32_t>(a.value);
    if (!adds) return std::all_of(numbers, numbers + a.count, [&](uint32_t n) { return n == value; });
    for (int64_t i = 0; i < a.count; ++i) numbers[i] += value;
    return true;
  };
}

}  // namespace

const std::string& failure_text() { return failure(); }

std::string FakeText::code(const std::string& text) {
  return kMagic + std::to_string(text.size()) + "\n" + text;
}

std::shared_ptr<FakeText> FakeText::open(const char* image) {
  if (std::strncmp(image, kMagic, std::strlen(kMagic)) != 0) return nullptr;
  char* line = nullptr;
  const size_t size = std::strtoull(image + std::strlen(kMagic), &line, 10);
  return std::shared_ptr<FakeText>(new FakeText(std::string(line + 1, size)));
}

FakeKernel FakeText::kernel(const std::string& name) const {
  if (text_.starts_with("// fake kernels")) return own_kernel(name);
  const std::shared_ptr<const gpu::Code> code = emulated(text_);
  if (code == nullptr) return {};
  const auto found = code->kernel(name);
  if (!found.ok()) return {};
  return [code, kernel = *found](const std::vector<std::byte>& argument, const FakeShape& shape) {
    const Status ran = (*device())->launch(kernel,
                                           {.x = shape.x,
                                            .y = shape.y,
                                            .z = shape.z,
                                            .threads = shape.threads,
                                            .shared_bytes = shape.shared_bytes},
                                           argument, "the emulated device");
    if (!ran.ok()) failure() = ran.error().message();
    return ran.ok();
  };
}

}  // namespace ostro::test
