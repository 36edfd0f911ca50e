#include "ostro/infer/settle_later.h"

#include <condition_variable>
#include <mutex>

namespace ostro::infer {

SettleLater::SettleLater(RowRunner& runner, std::chrono::milliseconds after)
    : thread_([&runner, after](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock lock(mutex);
        never.wait_for(lock, stop, after, [] { return false; });
        if (!stop.stop_requested()) runner.settle(stop);
      }) {}

}  // namespace ostro::infer
