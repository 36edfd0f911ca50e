// StopSignals: turns SIGTERM, SIGINT and SIGHUP into a request to save and stop.
#pragma once

namespace ostro::run {

// While this object exists, a first and a second of these signals only set flags: a terminal, a shell and a
// launcher may pass on the same wish, and a person may press Ctrl-C twice. The third ends the process at
// once, as without a handler. While a run is trained, each says on standard error what
// happens (stop_notice.h). SIGHUP that the process was told to ignore (nohup) stays ignored. Writing to a
// pipe whose reader is gone is an error instead of a SIGPIPE: the reader may have got the same signal. The
// destructor restores the previous handlers. At most one object at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The first signal that was received, 0 if none; and how many there were. Callable from any thread.
  int received() const;
  int count() const;
  bool stop_requested() const { return received() != 0; }
};

}  // namespace ostro::run
