#include "ostro/run/job/worker_hang.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <string>
#include <thread>

#include "ostro/base/log.h"
#include "ostro/base/watch/stacks.h"
#include "ostro/cluster/local/local_launcher.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/s3/routing_file_system.h"
#include "ostro/run/job/time_limits.h"

namespace ostro::run {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds kLastWord{1200};  // in which a heartbeat says that it hangs

void report_hang(const train::TrainConfig& config, const Pulse& pulse, Seconds still) {
  const std::string what =
      fmt::format("process {} hangs: nothing has moved for {:.1f} s in phase {} of step {}", ::getpid(),
                  still.count(), pulse.phase, pulse.step);
  pulse_phase("hangs", pulse.step);
  const std::string stacks = thread_stacks();
  const std::string path =
      io::join_path(train::run_directory(config), fmt::format("hang-{}.txt", ::getpid()));
  const Status written =
      io::write_file_atomically(objects::default_file_system(), path, fmt::format("{}\n\n{}", what, stacks));
  log_error(fmt::format("{}; the stacks of its threads are in {}", what,
                        written.ok() ? path : "the lines below (" + written.error().message() + ")"));
  log_error(stacks);
}

}  // namespace

std::unique_ptr<HangWatch> watch_for_hangs(const train::TrainConfig& config) {
  return std::make_unique<HangWatch>([&config] { return hang_limit(config.trainer, slowest_step_seconds()); },
                                     [&config](const Pulse& pulse, Seconds still) {
                                       // Whatever hangs may hold what the report needs, a lock of the log
                                       // perhaps: then it ends without one.
                                       std::promise<void> told;
                                       std::thread teller([&] {
                                         report_hang(config, pulse, still);
                                         told.set_value();
                                       });
                                       (void)told.get_future().wait_for(std::chrono::seconds(10));
                                       std::this_thread::sleep_for(kLastWord);
                                       ::_exit(cluster::kExitLostPlace);
                                     });
}

}  // namespace ostro::run
