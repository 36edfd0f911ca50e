// SettleLater: lets a runner settle on a thread of its own, some seconds after this was made.
#pragma once

#include <chrono>
#include <thread>

#include "ostro/infer/row_runner.h"

namespace ostro::infer {

// Its end stops that, and waits for it. The runner must outlive it.
class SettleLater {
 public:
  explicit SettleLater(RowRunner& runner, std::chrono::milliseconds after = std::chrono::seconds(3));

 private:
  std::jthread thread_;
};

}  // namespace ostro::infer
