#include "ostro/dist/dialler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/net/host_port.h"

namespace ostro::dist {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstRest{100}, kMostRest{2000};  // between two questions for a name
constexpr size_t kMostLooks = 8;                          // at keys of the store, in one call

}  // namespace

Dialler::Dialler(const Reach& reach, const HandshakeNames& names, KeyValue& store, milliseconds patience)
    : reach_(reach), names_(names), store_(store), patience_(patience) {}

Status Dialler::begin(int64_t peer, const std::string& told, std::list<Handshake>& talks) {
  if (reach_.use == RelayUse::kAlways || told == kThroughRelay) return call(peer);
  if (peer > names_.rank) return {};  // that one begins
  const size_t space = told.find(' ');
  if (space == std::string::npos)
    return invalid_argument(fmt::format("worker {} says '{}' in the place of an address", peer, told));
  return dial(peer, {told.substr(0, space), told.substr(space + 1), 0, "", {}, kFirstRest}, talks);
}

Status Dialler::dial(int64_t peer, Place place, std::list<Handshake>& talks) {
  auto begun = begin_connect(place.host, place.port, place.next);
  if (begun.ok()) {
    talks.push_back(Handshake::to(peer, std::move(begun->socket), names_));
    place.next = begun->next;
    dialled_[peer] = std::move(place);
    return {};
  }
  if (begun.error().code() == ErrorCode::kNotFound) {
    place.why = begun.error().message();
    place.again = Clock::now() + place.pause;
    place.pause = std::min(kMostRest, place.pause * 2);
    late_[peer] = std::move(place);
    return {};
  }
  if (reach_.use == RelayUse::kAuto && reach_.relay != nullptr)
    return fall_back(peer, begun.error().message());
  return begun.error().with_context(fmt::format("lost worker {}", peer));
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
  if (why.ok() && (!talk.connecting() || Clock::now() < talk.since() + patience_)) return false;
  Place place = std::move(dialled->second);
  dialled_.erase(dialled);
  if (place.next > 0) return dial(talk.peer(), std::move(place), talks).ok();
  if (reach_.use != RelayUse::kAuto || reach_.relay == nullptr) return false;
  return fall_back(talk.peer(),
                   why.ok() ? fmt::format("no answer in {} ms", patience_.count()) : why.error().message())
      .ok();
}

Status Dialler::look(const std::vector<int64_t>& missing) {
  if (reach_.relay == nullptr) return {};
  for (size_t i = 0; i < std::min(missing.size(), kMostLooks); ++i) {
    const int64_t peer = missing[looked_++ % missing.size()];
    if (peer < names_.rank || relayed_.count(peer) != 0) continue;
    if (store_.get(relayed_key(names_.rank, peer), milliseconds(1)).ok()) RETURN_IF_ERROR(call(peer));
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
