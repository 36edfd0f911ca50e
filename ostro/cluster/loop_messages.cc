// handle: the coordinator's treatment of a message, by the stage of its sender.
#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/cluster/loop.h"
#include "ostro/cluster/relay_request.h"
#include "ostro/cluster/wire/secret.h"

namespace ostro::cluster {

void Loop::handle(Peer& peer, std::string_view message) {
  MessageReader reader(message);
  switch (peer.stage) {
    case Stage::kStranger:
      return reader.kind() == Kind::kRelay ? handle_relay(peer, reader) : handle_proof(peer, reader);
    case Stage::kProved: return handle_hello(peer, reader);
    case Stage::kMember: return handle_member(peer, reader);
    case Stage::kLeaving: return;  // it has not read yet that it is refused
  }
}

// The connection leaves this thread: bytes between workers must not keep it from the members.
void Loop::handle_relay(Peer& peer, MessageReader& reader) {
  auto request = read_relay(reader, options_.secret, peer.nonce);
  if (!request.ok() && request.error().code() == ErrorCode::kCorrupt)
    return lose(peer, request.error().message());
  if (!request.ok()) {
    warn_of_stranger(fmt::format("{} (from {})", request.error().message(), peer.from));
    return refuse(peer, "the secret is wrong: start all with the same OSTRO_JOB_SECRET");
  }
  if (!relay_.has_room()) {
    const std::string full = fmt::format(
        "the relay has {} connections, and takes no more beside the members with this limit of open files; "
        "raise that of the coordinator (ulimit -n), or let more workers connect directly",
        relay_.limits().ends);
    warn_of_stranger(full);
    return refuse(peer, full, Kind::kNoRelay);
  }
  std::optional<Socket> socket = peer.channel.release();
  if (!socket) return lose(peer, "it does not follow the protocol of a worker");
  relay_.add({std::move(request->group), request->own, request->peer}, std::move(*socket));
  lose(peer, "it is at the relay");
}

void Loop::handle_proof(Peer& peer, MessageReader& reader) {
  const std::string_view its_nonce = reader.text();
  const std::string_view its_proof = reader.text();
  const std::string binding = peer.channel.binding();
  if (reader.kind() != Kind::kProof || !reader.done() || peer.in_clear)
    return lose(peer, "it does not follow the protocol of a worker");
  if (!same_code(its_proof, proof(options_.secret, "member", peer.nonce, its_nonce, binding))) {
    warn_of_stranger(fmt::format("it has another secret than this coordinator (from {})", peer.from));
    return refuse(peer, "the secret is wrong: start all with the same OSTRO_JOB_SECRET");
  }
  peer.stage = Stage::kProved;
  peer.most = kMostBytes;
  push(peer, Message(Kind::kWelcome)
                 .text(proof(options_.secret, "coordinator", peer.nonce, its_nonce, binding))
                 .number(options_.lease.count())
                 .bytes());
}

void Loop::handle_hello(Peer& peer, MessageReader& reader) {
  const std::optional<Hello> hello = read_hello(reader);
  if (reader.kind() != Kind::kHello || !hello)
    return lose(peer, "it does not follow the protocol of a worker");
  // The new member is compared with those that stay.
  remove_lost_members();
  const Result<int64_t> member = roster_.add(*hello, Clock::now());
  if (!member.ok()) {
    log_warning(fmt::format("a worker is refused: {}", member.error().message()));
    tell({Event::Kind::kRefused, {{hello->host, hello->pid}}, 0, member.error().message()});
    return refuse(peer, member.error().message());
  }
  peer.stage = Stage::kMember;
  peer.member = *member;
  peer.until = Clock::now() + options_.lease;
  members_[*member] = &peer;
  roster_.greet(*member);
  tell({Event::Kind::kJoined, {roster_.worker(*member)}, 0, ""});
  watch_.joined(*member, hello->job, hello->host, hello->pid);
}

void Loop::handle_member(Peer& peer, MessageReader& reader) {
  const Kind kind = reader.kind();
  const int64_t member = peer.member;
  if (kind == Kind::kBeat) {
    const std::optional<Progress> progress = read_beat(reader);
    if (!progress) return lose(peer, "it does not follow the protocol of a worker");
    watch_.report(member, *progress);
    roster_.steps(watch_.steps_done());
    return push(peer, Message(Kind::kBeat).bytes());
  }
  if (reader.done()) {
    if (kind == Kind::kReady) return roster_.ready(member, Clock::now());
    if (kind == Kind::kLeave) return roster_.leaves(member);
  }
  if (kind == Kind::kGoes) {
    peer.goes = std::string(reader.text());
    if (reader.done()) return watch_.says(member, peer.goes);
  }
  if (kind == Kind::kTells) {
    const std::string_view what = reader.text();
    if (reader.done()) return watch_.says(member, what);
  }
  if (kind == Kind::kSaid) {
    const std::string_view bytes = reader.text();
    if (reader.done()) {
      if (options_.on_said) options_.on_said(roster_.hello(member), bytes);
      return;
    }
  }
  if (kind == Kind::kSlices) return handle_slices(peer, reader);
  const bool stores = kind == Kind::kSet || kind == Kind::kGet || kind == Kind::kGetAll;
  const int64_t first = reader.number();  // an epoch, or a request
  const int64_t second = stores ? reader.number() : 0;
  const std::string key(stores ? reader.text() : std::string_view());
  const std::string_view text =
      kind == Kind::kSet || kind == Kind::kFault ? reader.text() : std::string_view();
  const int64_t count = kind == Kind::kGetAll ? reader.number() : 0;
  if (reader.done()) {
    if (kind == Kind::kEndSeen) return roster_.end_seen(member, first);
    if (kind == Kind::kDone) return roster_.done(first);
    if (kind == Kind::kBegan) return roster_.began(member, first);
    if (kind == Kind::kFault) return roster_.fault(member, first, text);
    if (kind == Kind::kSet) return roster_.set(member, first, second, key, text);
    if (kind == Kind::kGet) return roster_.get(member, first, second, key);
    if (kind == Kind::kGetAll) return roster_.get_all(member, first, second, key, count);
    if (kind == Kind::kCancel) return roster_.cancel(member, first);
  }
  lose(peer, "it does not follow the protocol of a worker");
}

void Loop::handle_slices(Peer& peer, MessageReader& reader) {
  const int64_t number = reader.number();
  FoundNames found;
  found.ends = reader.number() != 0;
  found.anew = reader.number() != 0;
  found.rates.limit = reader.number();
  found.rates.fastest = reader.number();
  found.text = shortened(reader.text(), kMostBytesOfReason);
  const int64_t size = reader.number();
  for (int64_t i = 0; i < size && i < roster_.size(); ++i) found.names.emplace_back(reader.text());
  if (!reader.done()) return lose(peer, "it does not follow the protocol of a worker");
  if (roster_.slices(peer.member, number, found) && !found.text.empty())
    watch_.happened("slices", found.text);
}

// At most one warning a second: thousands of connections may have a wrong secret, or no certificate.
void Loop::warn_of_stranger(const std::string& why) {
  const Clock::time_point now = Clock::now();
  if (now < next_warning_) return;
  next_warning_ = now + std::chrono::seconds(1);
  log_warning("a worker is refused: " + why);
}

void Loop::refuse(Peer& peer, const std::string& why, Kind kind) {
  push(peer, Message(kind).text(shortened(why, kMostBytesOfReason)).bytes());
  peer.stage = Stage::kLeaving;
}

}  // namespace ostro::cluster
