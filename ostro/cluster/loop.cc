#include "ostro/cluster/loop.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/cluster/relay_request.h"
#include "ostro/dist/socket.h"

namespace ostro::cluster {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStrangerTime(5000);  // to prove that it knows the secret, and to say hello
constexpr milliseconds kStrangerRest(500);  // after which one that has not done so may be dropped for another
constexpr milliseconds kRetry(1000);
constexpr std::chrono::minutes kTellAgain(1);    // that the journal cannot be written
constexpr std::chrono::minutes kNoBeginning(5);  // after which a job that never had an epoch is given up
constexpr int64_t kMostStrangers = 64;
constexpr int kMostAccepts = 16;  // in one turn

}  // namespace

Loop::Loop(const CoordinatorOptions& options, Socket listener, Journal journal,
           std::shared_ptr<tls::Certificates> certificates)
    : options_(options),
      listener_(std::move(listener)),
      port_(port_of(listener_)),
      journal_(std::move(journal)),
      certificates_(std::move(certificates)),
      epoch_(journal_.last_epoch()),
      roster_(
          {options.min_workers, options.max_workers, options.multiple, options.replicas,
           options.equal_slices},
          journal_.last_epoch(),
          [this](int64_t member, const std::string& message) {
            const auto found = members_.find(member);
            if (found != members_.end()) push(*found->second, message);
          },
          options.expected),
      relay_(Channel::framed(Message(Kind::kRelayed).bytes()), options.link_timeout,
             {.ends = options.relay_ends.value_or(most_relay_ends())}) {}

void Loop::stop() {
  stopped_ = true;
  waker_.wake();
}

void Loop::stop_run() {
  stops_run_ = true;
  waker_.wake();
}

// One turn: reads what came, drops silent peers, accepts new ones, then settles: lost members are removed,
// epochs begun and messages sent.
void Loop::run() {
  while (!stopped_) {
    wait();
    // After reading: when this thread has not run for a while, messages may lie unread, and the peers were
    // not silent.
    expire();
    roster_.expire(Clock::now());
    if (stops_run_.exchange(false)) roster_.stop();
    accept_some();
    settle();
  }
}

// Waits until bytes come, another thread wakes this one, or a time is reached at which something is due;
// reads what came.
void Loop::wait() {
  const Clock::time_point now = Clock::now();
  Clock::time_point until = now + std::chrono::hours(1);
  const bool accepts = next_accept_ <= now;
  if (!accepts) until = std::min(until, next_accept_);
  if (roster_.can_begin(now)) until = std::min(until, next_record_);
  if (const auto look = roster_.next_look(now)) until = std::min(until, *look);
  std::vector<pollfd> polls = {{waker_.fd(), POLLIN, 0}, {accepts ? listener_.fd() : -1, POLLIN, 0}};
  for (const Peer& peer : peers_) {
    until = std::min(until, peer.channel.has_unread() ? now : peer.until);
    polls.push_back({peer.channel.fd(),
                     static_cast<short>(peer.channel.wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0});
  }
  if (poll(polls.data(), polls.size(), poll_milliseconds(until)) < 0) return;
  if (polls[0].revents != 0) waker_.clear();
  size_t i = 2;
  for (Peer& peer : peers_) {
    const bool there = (polls[i++].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    if (there || peer.channel.has_unread()) read(peer);
  }
}

void Loop::read(Peer& peer) {
  if (peer.undecided && !decide(peer)) return;
  const Status filled = peer.channel.fill(peer.most);
  moved_ += peer.channel.take_moved();
  if (peer.channel.heard() && peer.stage == Stage::kMember) peer.until = Clock::now() + options_.lease;
  while (peer.lost.empty()) {
    const auto message = peer.channel.next(peer.most);
    if (!message.ok()) return lose(peer, message.error().message());
    if (!message->has_value()) break;
    handle(peer, **message);
  }
  if (filled.ok()) return;
  // Of a connection with TLS: it has no certificate of the job.
  if (peer.stage == Stage::kStranger && filled.error().code() == ErrorCode::kInvalidArgument)
    warn_of_stranger(fmt::format("{} (from {})", filled.error().message(), peer.from));
  lose(peer, filled.error().message());
}

void Loop::expire() {
  const Clock::time_point now = Clock::now();
  for (Peer& peer : peers_) {
    if (peer.until > now) continue;
    // Its process may be stopped and may continue at any time, so its launcher should kill it.
    if (peer.stage == Stage::kMember && peer.lost.empty() && options_.on_silence)
      options_.on_silence(roster_.hello(peer.member));
    lose(peer, fmt::format("nothing was heard from it for {} ms", options_.lease.count()));
  }
}

// Returns whether another connection can be accepted. At the limit the oldest unproved connection is dropped
// for it, unless it has only just come: many workers may join at once, and silent connections must not keep
// them out.
bool Loop::room_for_stranger() {
  int64_t strangers = 0;
  Peer* oldest = nullptr;
  for (Peer& peer : peers_) {
    if (peer.stage == Stage::kMember || !peer.lost.empty()) continue;
    if (oldest == nullptr) oldest = &peer;
    ++strangers;
  }
  if (strangers < kMostStrangers) return true;
  if (oldest->came + kStrangerRest > Clock::now()) {
    next_accept_ = oldest->came + kStrangerRest;
    return false;
  }
  lose(*oldest, "too many connections without a proof of the secret");
  return true;
}

void Loop::accept_some() {
  if (next_accept_ > Clock::now()) return;
  for (int i = 0; i < kMostAccepts; ++i) {
    pollfd waiting{listener_.fd(), POLLIN, 0};
    if (poll(&waiting, 1, 0) <= 0 || !room_for_stranger()) return;
    Result<Socket> socket = accept_from(listener_);
    if (!socket.ok()) {
      if (socket.error().code() != ErrorCode::kIo) return;
      next_accept_ = Clock::now() + kRetry;
      if (!std::exchange(told_of_accept_, true))
        log_warning(
            fmt::format("no worker can connect: {}; it is tried again every second; raise the limit "
                        "of open files (ulimit -n)",
                        socket.error().message()));
      return;
    }
    Peer& peer = peers_.emplace_back(std::move(*socket));
    peer.came = Clock::now();
    peer.from = dist::peer_address(peer.channel.fd());
    peer.until = peer.came + kStrangerTime;
    greet(peer);
  }
}

// With TLS a worker first learns that, in the clear, so that one without can say what is wrong.
void Loop::greet(Peer& peer) {
  const Nonce chosen = new_nonce();
  peer.nonce.assign(chosen.data(), chosen.size());
  if (certificates_) {
    push(peer, Message(Kind::kSecured).text(peer.nonce).bytes());
    const Status flushed = peer.channel.flush();
    if (!flushed.ok() || peer.channel.wants_to_write())
      return lose(peer, flushed.ok() ? "it does not read what it is sent" : flushed.error().message());
    peer.undecided = true;
    return;
  }
  push(peer, Message(Kind::kChallenge).text(peer.nonce).bytes());
}

// With TLS: whether it is known, by the first byte, what this connection is for. Returns false while it has
// not come.
bool Loop::decide(Peer& peer) {
  char first = 0;
  const ssize_t got = ::recv(peer.channel.fd(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  peer.undecided = false;
  peer.in_clear = got == 1 && first != kTlsFirstByte;
  if (peer.in_clear) return true;
  peer.channel.secure(*certificates_, tls::Side::kAccepts);
  push(peer, Message(Kind::kChallenge).text(peer.nonce).bytes());
  return true;
}

// Repeats until no peer is lost: sending may find another lost one.
void Loop::settle() {
  do {
    drop_lost();
    begin_epochs();
    // Set before any message is sent: a caller that asks because of a message must not get an older answer.
    epoch_ = roster_.epoch();
    member_count_ = roster_.size();
    status_ = roster_.over().value_or(0);
    const bool over = roster_.over().has_value();
    if (over && !over_.exchange(true)) watch_.happened("over", "the run is over");
    if (const int64_t epoch = roster_.whole_epoch(); epoch != std::exchange(told_epoch_, epoch) && epoch != 0)
      tell({Event::Kind::kEpoch, roster_.in_epoch(), epoch, ""});
    watch_.look(
        roster_.epoch(), roster_.current(), [this](int64_t member) { return roster_.rank(member); },
        roster_.last_end());
    flush();
  } while (std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return !peer.lost.empty(); }));
}

void Loop::remove_lost_members() {
  for (Peer& peer : peers_) {
    if (peer.lost.empty() || peer.stage != Stage::kMember) continue;
    peer.stage = Stage::kLeaving;
    members_.erase(peer.member);
    const bool may_go = roster_.may_go(peer.member);
    tell({may_go ? Event::Kind::kLeft : Event::Kind::kLost,
          {roster_.worker(peer.member)},
          0,
          may_go ? "" : peer.lost});
    watch_.gone(peer.member, may_go ? "" : peer.lost);
    roster_.remove(peer.member, peer.lost);
  }
}

void Loop::drop_lost() {
  remove_lost_members();
  // A peer that was lost while messages were sent is still a member, and stays for the next turn.
  peers_.remove_if([](const Peer& peer) { return !peer.lost.empty() && peer.stage != Stage::kMember; });
}

void Loop::begin_epochs() {
  if (!roster_.can_begin(Clock::now()) || next_record_ > Clock::now()) return;
  // The journal first: no number may be given out twice, even if this process ends here.
  const Status recorded = journal_.record(roster_.epoch() + 1);
  if (recorded.ok()) {
    unrecorded_since_.reset();
    return roster_.begin(Clock::now());
  }
  const Clock::time_point now = Clock::now();
  next_record_ = now + kRetry;
  if (!unrecorded_since_) unrecorded_since_ = now;
  if (now >= next_tell_) {
    next_tell_ = now + kTellAgain;
    log_error(
        fmt::format("no epoch can begin: {}; it is tried again every second", recorded.error().message()));
  }
  if (roster_.began_any() || now < *unrecorded_since_ + kNoBeginning) return;
  log_error("no epoch could begin for five minutes: the run is given up");
  roster_.done(1);
}

void Loop::flush() {
  for (Peer& peer : peers_) {
    if (!peer.lost.empty()) continue;
    const Status flushed = peer.channel.flush();
    moved_ += peer.channel.take_moved();
    if (!flushed.ok()) {
      lose(peer, flushed.error().message());
    } else if (peer.stage == Stage::kLeaving && !peer.channel.wants_to_write() &&
               !std::exchange(peer.finished, true)) {
      // Closing now could take from the other side what it has not read yet, so it closes first.
      peer.channel.finish();
    }
  }
}

void Loop::push(Peer& peer, const std::string& message) {
  if (!peer.channel.push(message)) lose(peer, "it does not read what it is sent");
}

void Loop::lose(Peer& peer, const std::string& why) {
  if (peer.lost.empty()) peer.lost = peer.goes.empty() ? why : peer.goes;
}

void Loop::tell(const Event& event) const {
  if (options_.observer) options_.observer(event);
}

}  // namespace ostro::cluster
