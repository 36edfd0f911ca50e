// StopSignals: turns SIGTERM and SIGINT into a request to save and stop.
#pragma once

namespace ostro::run {

// While this object exists, the first SIGTERM or SIGINT only sets a flag. A second one ends the process at
// once, as without a handler. While a run is trained, both say on
// standard error what happens (stop_notice.h). The destructor restores the previous handlers. At most one
// object at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that was received; 0 if none. One relaxed atomic load; callable from any thread.
  int received() const;
  bool stop_requested() const { return received() != 0; }
};

}  // namespace ostro::run
