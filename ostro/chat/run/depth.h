// DepthGuard: limits the recursion depth of evaluation, because it uses the thread's stack. Throws
// TemplateError beyond kMax.
#pragma once

#include <fmt/core.h>

#include "ostro/chat/value/value.h"

namespace ostro::chat::jinja {

// Counts one level of `depth` while it lives.
class DepthGuard {
 public:
  static constexpr int kMax = 1000;  // each level is well below 1 KiB of stack
  explicit DepthGuard(int& depth) : depth_(depth) {
    if (depth_ >= kMax)
      throw TemplateError(fmt::format("nested more than {} deep: macros that call themselves?", kMax));
    ++depth_;
  }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  ~DepthGuard() { --depth_; }

 private:
  int& depth_;
};

}  // namespace ostro::chat::jinja
