#include "ostro/dist/peer_sockets.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <list>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/dist/dialler.h"
#include "ostro/dist/handshake.h"

namespace ostro::dist {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kSlice{100};  // after which a wait looks whether it is still wanted
constexpr size_t kMostStrangers = 256;
constexpr int kDirectPart = 4;  // of all the time, before another way is tried instead of a direct one

class Meeting {
 public:
  Meeting(const PeerOptions& options, KeyValue& store, Listener listener)
      : options_(options),
        store_(store),
        listener_(std::move(listener)),
        names_{options.secret, options.prefix, options.rank, options.size, options.certificates},
        dialler_(options.reach, names_, store,
                 std::min(options.reach.patience, options.connect_timeout / kDirectPart)),
        out_(static_cast<size_t>(options.size)) {}

  Result<std::vector<PeerSocket>> run() {
    std::string told = listener_.socket.open() ? listener_.host + " " + listener_.port : kThroughRelay;
    if (listener_.socket.open() && options_.reach.use == RelayUse::kAuto)
      told += fmt::format(" {}", kOrRelay);
    RETURN_IF_ERROR(store_.set(key(options_.rank), fmt::format("{} {}", options_.size, told)));
    fault_point("connect", options_.epoch, options_.rank);
    const auto met = options_.meet_timeout ? Clock::now() + *options_.meet_timeout : Clock::time_point::max();
    ASSIGN_OR_RETURN(const std::vector<std::string> addresses, all_addresses(met));
    for (int64_t peer = 0; peer < options_.size; ++peer)
      if (peer != options_.rank)
        RETURN_IF_ERROR(dialler_.begin(peer, addresses[static_cast<size_t>(peer)], talks_));
    const auto until = Clock::now() + options_.connect_timeout;
    auto look = Clock::now() + kSlice;
    while (missing() >= 0) {
      const auto now = Clock::now();
      if (now >= until) return late();
      if (now >= look) {
        RETURN_IF_ERROR(still_wanted());
        RETURN_IF_ERROR(dialler_.look(all_missing()));
        look = Clock::now() + kSlice;
      }
      RETURN_IF_ERROR(turn(std::clamp(std::chrono::ceil<milliseconds>(std::min(look, until) - Clock::now()),
                                      milliseconds(0), kSlice)));
    }
    if (dialler_.relayed() > 0)
      log_info(fmt::format("worker {}: {} of {} connections go through the coordinator", options_.rank,
                           dialler_.relayed(), options_.size - 1));
    return std::move(out_);
  }

 private:
  std::string group() const { return options_.prefix + "address/"; }
  std::string key(int64_t rank) const { return group() + std::to_string(rank); }

  // The addresses of all workers, by rank, in one answer of the store: a worker that asked for each would
  // have the store send size * size messages. Strangers that come meanwhile are heard, so that they do not
  // fill the queue. Of a peer with another size the address may never be complete, so each wait looks at one
  // peer besides.
  Result<std::vector<std::string>> all_addresses(Clock::time_point until) {
    for (int64_t waits = 0;; ++waits) {
      auto values = store_.get_all(group(), options_.size, slice_before(until));
      if (values.ok()) {
        std::vector<std::string> addresses;
        for (int64_t peer = 0; peer < options_.size; ++peer) {
          ASSIGN_OR_RETURN(addresses.emplace_back(), address_in((*values)[static_cast<size_t>(peer)], peer));
        }
        return addresses;
      }
      const bool over = values.error().code() != ErrorCode::kBusy || Clock::now() >= until;
      if (over) return why_none(values.error());
      if (options_.given_up && options_.given_up()) return why_none(busy("given up"));
      const int64_t peer = waits % options_.size;
      const auto value = store_.get(key(peer), milliseconds(1));
      if (value.ok()) RETURN_IF_ERROR(address_in(*value, peer));
      RETURN_IF_ERROR(turn(milliseconds(0)));
    }
  }

  static milliseconds slice_before(Clock::time_point until) {
    return std::clamp(std::chrono::ceil<milliseconds>(until - Clock::now()), milliseconds(1), kSlice);
  }

  // The address in a worker's value, behind the size of the group that it means.
  Result<std::string> address_in(const std::string& value, int64_t peer) const {
    const size_t space = value.find(' ');
    if (space == std::string::npos || value.substr(0, space) != std::to_string(options_.size))
      return invalid_argument(fmt::format("worker {} is one of {} workers, worker {} of {}", peer,
                                          value.substr(0, space), options_.rank, options_.size));
    return value.substr(space + 1);
  }

  // `error` with the worker that it is about: one whose size differs, or the first that has no address.
  Error why_none(const Error& error) const {
    for (int64_t peer = 0; peer < options_.size; ++peer) {
      const auto value = store_.get(key(peer), milliseconds(1));
      if (!value.ok() && value.error().code() != ErrorCode::kBusy) break;  // the store does not answer
      if (!value.ok()) return error.with_context(fmt::format("waiting for worker {}", peer));
      if (const auto address = address_in(*value, peer); !address.ok()) return address.error();
    }
    return error.with_context("waiting for the addresses of the workers");
  }

  // The ranks without a connection; the first of them, -1: there is none.
  std::vector<int64_t> all_missing() const {
    std::vector<int64_t> ranks;
    for (int64_t rank = 0; rank < options_.size; ++rank)
      if (rank != options_.rank && !out_[static_cast<size_t>(rank)].open()) ranks.push_back(rank);
    return ranks;
  }
  int64_t missing() const {
    for (int64_t rank = 0; rank < options_.size; ++rank)
      if (rank != options_.rank && !out_[static_cast<size_t>(rank)].open()) return rank;
    return -1;
  }

  // Whether this group may still come about: a store says so of a key that nothing sets.
  Status still_wanted() {
    if (options_.given_up && options_.given_up()) return busy("given up");
    const auto nothing = store_.get(options_.prefix + "nothing", milliseconds(1));
    return nothing.ok() || nothing.error().code() == ErrorCode::kBusy ? Status() : Status(nothing.error());
  }

  // Waits for anything to happen, and does what can be done. An error only of a connection that this worker
  // makes: one that comes by itself may be a stranger's.
  Status turn(milliseconds wait) {
    std::vector<pollfd> polls{{listener_.socket.fd(), POLLIN, 0}};
    for (const Handshake& talk : talks_)
      polls.push_back({talk.fd(), static_cast<short>(talk.wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0});
    dialler_.add_polls(polls);
    ::poll(polls.data(), polls.size(), static_cast<int>(wait.count()));
    RETURN_IF_ERROR(dialler_.turn(talks_));
    for (auto talk = talks_.begin(); talk != talks_.end();) {
      const Status status = talk->turn();
      if (dialler_.instead(*talk, status, talks_)) {
        talk = talks_.erase(talk);
        continue;
      }
      // What answers at the address of a peer may be another program by now, and bytes may have been changed.
      if (!status.ok() && !talk->came()) return io_error(status.error().message());
      const bool late = talk->came() && Clock::now() > talk->since() + options_.connect_timeout;
      if (status.ok() && !talk->done() && !late) {
        ++talk;
        continue;
      }
      if (status.ok() && talk->done())
        take(*talk);
      else if (!status.ok() && status.error().code() == ErrorCode::kInvalidArgument && talk->peer() >= 0)
        doubted_ = talk->peer();
      else if (!status.ok() && status.error().code() != ErrorCode::kIo && options_.certificates)
        refused_ = fmt::format("{} (from {})", status.error().message(), talk->from());
      talk = talks_.erase(talk);
    }
    for (size_t i = 0; i < out_.size(); ++i) {
      if (talks_.size() >= kMostStrangers + out_.size()) {
        // Room for the next: the oldest of those that have not even said who they are.
        const auto oldest = std::find_if(talks_.begin(), talks_.end(),
                                         [](const Handshake& t) { return t.came() && t.peer() < 0; });
        if (oldest == talks_.end()) break;
        talks_.erase(oldest);
      }
      Socket socket = accept_from(listener_);
      if (!socket.open()) break;
      talks_.push_back(Handshake::from_anybody(std::move(socket), names_));
    }
    return Status();
  }

  void take(Handshake& talk) {
    PeerSocket& place = out_[static_cast<size_t>(talk.peer())];
    if (!place.open()) place = talk.take();
  }

  Error late() const {
    if (doubted_ >= 0 && !out_[static_cast<size_t>(doubted_)].open())
      return io_error(
          fmt::format("worker {} did not prove to worker {} that it knows the job's secret: do both have the "
                      "same secret?",
                      doubted_, options_.rank));
    return io_error(fmt::format("no connection with worker {} within {} ms{}{}", missing(),
                                options_.connect_timeout.count(), dialler_.why_not(missing()),
                                refused_.empty() ? "" : "; one was refused: " + refused_));
  }

  const PeerOptions& options_;
  KeyValue& store_;
  const Listener listener_;  // not open when all connections go through the relay
  const HandshakeNames names_;
  Dialler dialler_;
  std::vector<PeerSocket> out_;
  std::list<Handshake> talks_;
  int64_t doubted_ = -1;  // came, and proved nothing
  std::string refused_;   // why the last connection was refused that has not even said whose it is
};

}  // namespace

Result<std::vector<PeerSocket>> connect_peers(const PeerOptions& options, KeyValue& store) {
  Listener listener;
  if (options.reach.use != RelayUse::kAlways) {
    const int most = static_cast<int>(options.size) + static_cast<int>(kMostStrangers);
    ASSIGN_OR_RETURN(listener, listen_at(options.reach, most));
  }
  return Meeting(options, store, std::move(listener)).run();
}

}  // namespace ostro::dist
