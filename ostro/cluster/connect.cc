// connect_and_prove: the first messages between a member and a coordinator.
#include <fmt/format.h>
#include <poll.h>

#include <utility>

#include "ostro/base/sha256.h"
#include "ostro/cluster/link.h"
#include "ostro/cluster/wire/secret.h"

namespace ostro::cluster {
namespace {

// Waits for the coordinator's next message, of this kind.
Result<std::string> await(Channel& channel, Kind kind, Clock::time_point deadline) {
  Status filled;
  while (true) {
    const Status flushed = channel.flush();
    ASSIGN_OR_RETURN(const std::optional<std::string_view> message, channel.next(kMostBytes));
    if (message) {
      MessageReader reader(*message);
      if (reader.kind() == kind) return std::string(*message);
      if (reader.kind() == Kind::kRefused) return invalid_argument(std::string(reader.text()));
      return corrupt("it does not follow the protocol of a coordinator");
    }
    RETURN_IF_ERROR(filled);
    RETURN_IF_ERROR(flushed);
    pollfd wait{channel.fd(), static_cast<short>(channel.wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0};
    const int ready = poll(&wait, 1, poll_milliseconds(deadline));
    if (ready == 0 && Clock::now() >= deadline) return busy("it does not answer");
    if (ready > 0) filled = channel.fill(kMostBytes);
  }
}

Result<std::chrono::milliseconds> prove(Channel& channel, const std::string& secret,
                                        Clock::time_point deadline) {
  ASSIGN_OR_RETURN(const std::string challenge, await(channel, Kind::kChallenge, deadline));
  MessageReader reader(challenge);
  const std::string its_nonce(reader.text());
  if (!reader.done()) return corrupt("it does not follow the protocol of a coordinator");
  const Nonce own = new_nonce();
  const std::string_view own_nonce(own.data(), own.size());
  channel.push(
      Message(Kind::kProof).text(own_nonce).text(proof(secret, "member", its_nonce, own_nonce)).bytes());
  ASSIGN_OR_RETURN(const std::string welcome, await(channel, Kind::kWelcome, deadline));
  reader = MessageReader(welcome);
  const std::string_view its_proof = reader.text();
  const std::chrono::milliseconds lease(reader.number());
  if (!reader.done() || lease.count() < 1 || lease > std::chrono::hours(24 * 365)) {
    return corrupt("it does not follow the protocol of a coordinator");
  }
  if (!same_code(its_proof, proof(secret, "coordinator", its_nonce, own_nonce))) {
    return invalid_argument("it does not know the secret");
  }
  return lease;
}

}  // namespace

Result<Joined> connect_and_prove(const std::string& host, int port, const std::string& secret,
                                 Clock::time_point deadline) {
  ASSIGN_OR_RETURN(Socket socket, connect_to(host, port, deadline));
  Channel channel(std::move(socket));
  const Result<std::chrono::milliseconds> lease = prove(channel, secret, deadline);
  if (!lease.ok()) return lease.error().with_context(fmt::format("the coordinator at {}:{}", host, port));
  return Joined{std::move(channel), *lease};
}

}  // namespace ostro::cluster
