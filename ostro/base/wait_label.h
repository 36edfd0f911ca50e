// wait_label: the label of the spans in which a thread waits (docs/inside/profiling.md). Thread-safe.
#pragma once

#include <memory>

#include "ostro/base/profile.h"

namespace ostro {

enum class Wait {
  kThreads,  // for the other threads of a job
  kWorkers,  // for an exchange with other workers that the program cannot hide behind its own work
};

inline const SpanLabelPtr& wait_label(Wait what) {
  static const SpanLabelPtr threads =
      std::make_shared<SpanLabel>(SpanLabel{"wait for threads", "wait", {}, 0, 0});
  static const SpanLabelPtr workers =
      std::make_shared<SpanLabel>(SpanLabel{"wait for workers", "wait", {}, 0, 0});
  return what == Wait::kThreads ? threads : workers;
}

}  // namespace ostro
