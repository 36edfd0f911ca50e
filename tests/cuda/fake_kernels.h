// FakeText: compiled device text of the fake NVRTC, and its kernels for the fake driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ostro::test {

struct FakeShape {
  int64_t x = 1, y = 1, z = 1;
  int threads = 32;
  int64_t shared_bytes = 0;
};

// Runs one launch on the host. False: it failed; the reason is in failure_text().
using FakeKernel = std::function<bool(const std::vector<std::byte>& argument, const FakeShape& shape)>;

// Thread-safe.
class FakeText {
 public:
  // What the fake NVRTC makes of a text, and back; null when it is not such code.
  static std::string code(const std::string& text);
  static std::shared_ptr<FakeText> open(const char* image);

  // Empty: there is none of that name. The kernels of device text run on an emulated device (gpu/emulated).
  // A text that begins with "// fake kernels" has `add`, which adds `value` to `count` numbers of 32 bits
  // (FakeAdd), and `check`, which fails unless they are `value`.
  FakeKernel kernel(const std::string& name) const;

 private:
  explicit FakeText(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

struct FakeAdd {
  uint64_t at;
  int64_t count;
  uint64_t value;
};

// Why the last kernel failed.
const std::string& failure_text();

}  // namespace ostro::test
