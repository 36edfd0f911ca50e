// SIGTERM and SIGINT as a wish: save and stop.
#pragma once

namespace ostro::train {

// While it lives, the first SIGTERM or SIGINT only sets a flag; a second one ends the process at once, as if
// nobody caught it. The destructor brings back the handlers from before. At most one at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that asked to stop; 0 when none did. One relaxed load; from any thread.
  int received() const;
  bool stop_requested() const { return received() != 0; }
};

}  // namespace ostro::train
