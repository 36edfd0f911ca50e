#include "ostro/cluster/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "ostro/base/open_files.h"
#include "ostro/cluster/loop.h"
#include "ostro/cluster/watch/recorder.h"

namespace ostro::cluster {

struct Coordinator::State {
  State(const CoordinatorOptions& options, Socket listener, Journal journal,
        std::shared_ptr<tls::Certificates> certificates)
      : loop(options, std::move(listener), std::move(journal), std::move(certificates)),
        recorder(options.state_file, options.mesh, loop.watch()),
        thread([this] { loop.run(); }) {}
  ~State() {
    loop.stop();
    thread.join();
  }
  Loop loop;
  Recorder recorder;
  std::thread thread;  // after the loop, which it uses
};

Coordinator::Coordinator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Coordinator::~Coordinator() = default;

Result<std::unique_ptr<Coordinator>> Coordinator::start(const CoordinatorOptions& options) {
  const int64_t least = std::max(options.min_workers, options.multiple);
  if (options.min_workers < 1 || options.multiple < 1 || options.max_workers < least)
    return invalid_argument(fmt::format("{} to {} workers, and a multiple of {}: a job needs {} at least",
                                        options.min_workers, options.max_workers, options.multiple,
                                        std::max<int64_t>(1, least)));
  if (options.lease < std::chrono::milliseconds(10)) {
    return invalid_argument(fmt::format("a lease of {} ms: 10 at least", options.lease.count()));
  }
  raise_open_files();  // each member is a connection
  std::shared_ptr<tls::Certificates> certificates;
  if (options.tls) {
    ASSIGN_OR_RETURN(certificates, tls::Certificates::of_job(options.secret));
  }
  ASSIGN_OR_RETURN(Socket listener, listen_at(options.bind, options.port, options.secret.empty()));
  ASSIGN_OR_RETURN(Journal journal, Journal::open(options.journal));
  auto state =
      std::make_unique<State>(options, std::move(listener), std::move(journal), std::move(certificates));
  return std::unique_ptr<Coordinator>(new Coordinator(std::move(state)));
}

int Coordinator::port() const { return state_->loop.port(); }
int64_t Coordinator::epoch() const { return state_->loop.epoch(); }
int64_t Coordinator::members() const { return state_->loop.members(); }
void Coordinator::stop_run() { state_->loop.stop_run(); }
std::optional<int64_t> Coordinator::over() const { return state_->loop.over(); }
JobState Coordinator::watched() const {
  JobState state = state_->loop.watch().state();
  state.control_bytes = state_->loop.moved();
  return state;
}
int64_t Coordinator::steps_done() const { return state_->loop.watch().steps_done(); }

}  // namespace ostro::cluster
