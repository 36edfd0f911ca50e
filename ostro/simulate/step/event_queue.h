// EventQueue: a virtual clock, and what happens when: actions run in the order of their times, those of one
// time in the order in which they were added. Not thread-safe; there are no errors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ostro/base/check.h"

namespace ostro::simulate {

class EventQueue {
 public:
  using Action = std::function<void()>;

  // Seconds since the clock began.
  double now() const { return now_; }
  bool empty() const { return heap_.empty(); }
  // The time of the next action; the queue may not be empty.
  double next() const { return heap_.front().time; }

  void at(double time, Action action) {
    OSTRO_CHECK(time >= now_, "an action for {} s at {} s", time, now_);
    heap_.push_back({time, added_++, std::move(action)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void after(double seconds, Action action) { at(now_ + seconds, std::move(action)); }

  // Sets the clock to the time of the next action, and runs it. False when there is none.
  bool step() {
    if (heap_.empty()) return false;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    now_ = entry.time;
    entry.action();
    return true;
  }

 private:
  struct Entry {
    double time;
    int64_t number;
    Action action;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time > b.time : a.number > b.number;
  }

  std::vector<Entry> heap_;
  double now_ = 0;
  int64_t added_ = 0;
};

}  // namespace ostro::simulate
