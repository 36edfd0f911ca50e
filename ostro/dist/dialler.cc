#include "ostro/dist/dialler.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/net/host_port.h"

namespace ostro::dist {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstRest{100}, kMostRest{2000};  // between two questions for a name
// What one call looks at keys of the store: so many of them, and no longer than this.
constexpr size_t kMostLooks = 8;
constexpr milliseconds kLookTime{200};
constexpr milliseconds kLongestAnswer{2000};  // of a store that still answers
constexpr milliseconds kLeastPatience{500};   // with one address

}  // namespace

Dialler::Dialler(const Reach& reach, const HandshakeNames& names, KeyValue& store, milliseconds patience)
    : reach_(reach), names_(names), store_(store), patience_(patience) {}

Status Dialler::begin(int64_t peer, const std::string& told, std::list<Handshake>& talks) {
  if (reach_.use == RelayUse::kAlways || told == kThroughRelay) return call(peer);
  if (peer > names_.rank) return {};  // that one begins
  std::istringstream words(told);
  Place place;
  std::string or_relay;
  if (!(words >> place.host >> place.port))
    return invalid_argument(fmt::format("worker {} says '{}' in the place of an address", peer, told));
  words >> or_relay;
  place.or_relay = or_relay == kOrRelay || reach_.use == RelayUse::kAuto;
  place.pause = kFirstRest;
  return dial(peer, std::move(place), talks);
}

Status Dialler::dial(int64_t peer, Place place, std::list<Handshake>& talks) {
  auto begun = begin_connect(place.host, place.port, place.next);
  if (begun.ok()) {
    talks.push_back(Handshake::to(peer, std::move(begun->socket), names_));
    place.next = begun->next;
    place.patience = std::max(kLeastPatience, patience_ / static_cast<int64_t>(begun->count));
    dialled_[peer] = std::move(place);
    return {};
  }
  // A name that another network knows may never have an address here.
  const bool waits = !has_relay(place) || Clock::now() < place.since + patience_;
  if (begun.error().code() == ErrorCode::kNotFound && waits) {
    place.why = begun.error().message();
    place.again = Clock::now() + place.pause;
    place.pause = std::min(kMostRest, place.pause * 2);
    late_[peer] = std::move(place);
    return {};
  }
  if (has_relay(place)) return fall_back(peer, begun.error().message());
  // What is wrong with what it has told is no error of this worker.
  return io_error(fmt::format("lost worker {}: it tells the others to connect to {} port {}: {}", peer,
                              place.host, place.port, begun.error().message()));
}

Status Dialler::call(int64_t peer) {
  if (!relayed_.insert(peer).second) return {};
  if (reach_.relay == nullptr)
    return invalid_argument(
        fmt::format("worker {} is reached through a relay only, and this group has none", peer));
  auto call = reach_.relay->call(names_.prefix, names_.rank, peer);
  if (!call.ok()) return call.error().with_context(fmt::format("lost worker {}: the relay", peer));
  calls_[peer] = std::move(*call);
  return {};
}

// The other one has to call, too; it learns of that by a key (look).
Status Dialler::fall_back(int64_t peer, const std::string& why) {
  log_warning(fmt::format("worker {} cannot connect to worker {} ({}): the coordinator relays between them",
                          names_.rank, peer, why));
  RETURN_IF_ERROR(store_.set(relayed_key(peer, names_.rank), ""));
  return call(peer);
}

std::string Dialler::relayed_key(int64_t lower, int64_t higher) const {
  return fmt::format("{}relayed/{}/{}", names_.prefix, lower, higher);
}

void Dialler::add_polls(std::vector<pollfd>& polls) const {
  for (const auto& [peer, call] : calls_)
    polls.push_back({call->fd(), static_cast<short>(call->wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0});
}

Status Dialler::turn(std::list<Handshake>& talks) {
  for (auto it = calls_.begin(); it != calls_.end();) {
    const auto joined = it->second->turn();
    // What is said before any proof may be a stranger's word, so it is no verdict on this worker.
    if (!joined.ok())
      return io_error(fmt::format("lost worker {}: the relay: {}", it->first, joined.error().message()));
    if (!*joined) {
      ++it;
      continue;
    }
    Socket socket = it->second->take();
    // Who connects is as without a relay.
    talks.push_back(it->first < names_.rank ? Handshake::to(it->first, std::move(socket), names_)
                                            : Handshake::from_anybody(std::move(socket), names_));
    it = calls_.erase(it);
  }
  std::vector<std::pair<int64_t, Place>> due;
  for (const auto& [peer, place] : late_)
    if (Clock::now() >= place.again) due.emplace_back(peer, place);
  for (auto& [peer, place] : due) {
    late_.erase(peer);
    RETURN_IF_ERROR(dial(peer, std::move(place), talks));
  }
  return {};
}

bool Dialler::instead(const Handshake& talk, const Status& why, std::list<Handshake>& talks) {
  const auto dialled = dialled_.find(talk.peer());
  if (talk.came() || dialled == dialled_.end()) return false;
  // Two hosts behind gateways may have the same address: then a worker reaches itself, or another's worker.
  // What has accepted may be a machine between the two that waits for another, or a program that says
  // nothing.
  const milliseconds patience = dialled->second.patience * (talk.connecting() ? 1 : 2);
  if (why.ok() && (talk.answered() || Clock::now() < talk.since() + patience)) return false;
  Place place = std::move(dialled->second);
  dialled_.erase(dialled);
  if (place.next > 0) return dial(talk.peer(), std::move(place), talks).ok();
  if (!has_relay(place)) return false;
  return fall_back(talk.peer(),
                   why.ok() ? fmt::format("no answer in {} ms", patience.count()) : why.error().message())
      .ok();
}

// The store may be far away, and a question for a key that is not set costs all the time that it may take: so
// that is a few times what an answer takes, by a key that this worker has set itself.
Result<milliseconds> Dialler::time_of_an_answer() {
  if (answer_time_) return *answer_time_;
  const std::string key = relayed_key(names_.rank, names_.rank);
  RETURN_IF_ERROR(store_.set(key, ""));
  const auto begin = Clock::now();
  const auto answer = store_.get(key, kLongestAnswer);
  if (!answer.ok() && answer.error().code() != ErrorCode::kBusy) return answer.error();
  const auto took = std::chrono::ceil<milliseconds>(Clock::now() - begin);
  if (answer.ok()) answer_time_ = took;
  return took;
}

Status Dialler::look(const std::vector<int64_t>& missing) {
  const bool waits = std::any_of(missing.begin(), missing.end(), [&](int64_t peer) {
    return peer > names_.rank && relayed_.count(peer) == 0;
  });
  if (reach_.relay == nullptr || !waits) return {};
  ASSIGN_OR_RETURN(const milliseconds answer, time_of_an_answer());
  const milliseconds each = std::min(kLongestAnswer, 4 * std::max(answer, milliseconds(1)));
  const auto until = Clock::now() + kLookTime;
  size_t looks = 0;
  for (size_t i = 0; i < missing.size() && looks < kMostLooks; ++i) {
    const int64_t peer = missing[looked_++ % missing.size()];
    if (peer < names_.rank || relayed_.count(peer) != 0) continue;
    if (looks++ > 0 && Clock::now() >= until) break;
    if (store_.get(relayed_key(names_.rank, peer), each).ok()) RETURN_IF_ERROR(call(peer));
  }
  return {};
}

std::string Dialler::why_not(int64_t peer) const {
  if (const auto late = late_.find(peer); late != late_.end())
    return fmt::format("; its name has no address yet: {}", late->second.why);
  if (calls_.count(peer) != 0) return "; it has not called the relay";
  return "";
}

}  // namespace ostro::dist
