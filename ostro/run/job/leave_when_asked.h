// LeaveWhenAsked: lets a worker leave its job when a signal or a notice asks for it; the other workers go on.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "ostro/base/log.h"
#include "ostro/cluster/local/local_launcher.h"
#include "ostro/cluster/member.h"
#include "ostro/run/notice/notice_watch.h"
#include "ostro/run/notice/signals.h"

namespace ostro::run {

// While it exists, SIGTERM, SIGINT, SIGHUP (StopSignals; at most one at a time), and the notices of `options`
// make this worker leave. If it is still there when trainer.notice_grace has passed, its process ends, so
// that the others notice at once. `member` and `options` must outlive it. asked() may be called from any
// thread.
class LeaveWhenAsked {
 public:
  LeaveWhenAsked(cluster::Member& member, const train::TrainerOptions& options)
      : watch_(options, {.signalled = [this] { return signals_.stop_requested(); },
                         .on_ask =
                             [&member](const std::string& why) {
                               const std::string reason = why.empty() ? "a signal asks it to leave" : why;
                               log_info(fmt::format("this worker leaves: {}", reason));
                               member.goes(std::string(cluster::kNoticeWord) + reason);
                               member.leave();
                             },
                         .on_late =
                             [&options] {
                               log_error(fmt::format(
                                   "this worker has not left within {} s (trainer.notice_grace) and ends",
                                   options.notice_grace->seconds));
                               ::_exit(cluster::kExitLeft);
                             }}) {}
  bool asked() const { return watch_.asked(); }

 private:
  const StopSignals signals_;
  NoticeWatch watch_;  // after the signals, which its thread looks at
};

}  // namespace ostro::run
