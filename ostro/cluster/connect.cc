// connect_and_prove: the first messages between a member and a coordinator.
#include <fmt/format.h>
#include <poll.h>

#include <utility>

#include "ostro/base/net/host_port.h"
#include "ostro/base/sha256.h"
#include "ostro/cluster/link.h"
#include "ostro/cluster/wire/secret.h"

namespace ostro::cluster {
namespace {

// Waits for the coordinator's next message, of this kind.
Result<std::string> await(Channel& channel, Kind kind, Clock::time_point deadline) {
  const bool secures = kind == Kind::kSecured;
  Status filled;
  while (true) {
    const Status flushed = channel.flush();
    ASSIGN_OR_RETURN(const std::optional<std::string_view> message, channel.next(kMostBytes));
    if (message) {
      MessageReader reader(*message);
      if (reader.kind() == kind) return std::string(*message);
      if (reader.kind() == Kind::kRefused) return invalid_argument(std::string(reader.text()));
      if (reader.kind() == Kind::kSecured)  // as the first message; later ones are in TLS
        return invalid_argument(
            "it takes only connections with TLS, and this worker has none: give it trainer.tls: job, as the "
            "coordinator's configuration");
      if (secures && reader.kind() == Kind::kChallenge)
        return invalid_argument(
            "it has no TLS, and this worker has trainer.tls: job, so it does not join: start the coordinator "
            "with the same configuration");
      return corrupt("it does not follow the protocol of a coordinator");
    }
    RETURN_IF_ERROR(filled);
    RETURN_IF_ERROR(flushed);
    pollfd wait{channel.fd(), static_cast<short>(channel.wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0};
    const bool unread = channel.has_unread();
    const int ready = poll(&wait, 1, unread ? 0 : poll_milliseconds(deadline));
    if (!unread && ready == 0 && Clock::now() >= deadline) return busy("it does not answer");
    if (unread || ready > 0) filled = channel.fill(kMostBytes);
  }
}

Result<std::chrono::milliseconds> prove(Channel& channel, const std::string& secret, bool encrypted,
                                        Clock::time_point deadline) {
  ASSIGN_OR_RETURN(const std::string challenge, await(channel, Kind::kChallenge, deadline));
  MessageReader reader(challenge);
  const std::string its_nonce(reader.text());
  if (!reader.done()) return corrupt("it does not follow the protocol of a coordinator");
  const Nonce own = new_nonce();
  const std::string_view own_nonce(own.data(), own.size());
  if (encrypted && channel.binding().empty())
    return corrupt("it does not follow the protocol of a coordinator");
  channel.push(Message(Kind::kProof)
                   .text(own_nonce)
                   .text(proof(secret, "member", its_nonce, own_nonce, channel.binding()))
                   .bytes());
  ASSIGN_OR_RETURN(const std::string welcome, await(channel, Kind::kWelcome, deadline));
  reader = MessageReader(welcome);
  const std::string_view its_proof = reader.text();
  const std::chrono::milliseconds lease(reader.number());
  if (!reader.done() || lease.count() < 1 || lease > std::chrono::hours(24 * 365)) {
    return corrupt("it does not follow the protocol of a coordinator");
  }
  if (!same_code(its_proof, proof(secret, "coordinator", its_nonce, own_nonce, channel.binding()))) {
    return invalid_argument("it does not know the secret");
  }
  return lease;
}

// Whatever comes instead of kSecured, a worker says nothing without TLS: no answer of a stranger makes it
// leave TLS out.
Status secure(Channel& channel, tls::Certificates* certificates, Clock::time_point deadline) {
  if (certificates == nullptr) return {};
  const Result<std::string> secured = await(channel, Kind::kSecured, deadline);
  if (!secured.ok()) return secured.error();
  // Bytes behind that message would be read as if they had come in TLS.
  if (channel.holds_bytes()) return corrupt("it says something between its offer of TLS and TLS");
  channel.secure(*certificates, tls::Side::kConnects);
  return {};
}

}  // namespace

Result<Joined> connect_and_prove(const std::string& host, int port, const std::string& secret,
                                 tls::Certificates* certificates, Clock::time_point deadline,
                                 KnownAddresses& known, bool again) {
  ASSIGN_OR_RETURN(Socket socket, connect_to(host, port, deadline, &known));
  Channel channel(std::move(socket));
  const std::string place = "the coordinator at " + host_and_port(host, port);
  const auto failed = [&](const Error& error) {
    ++known.first;  // something else may be at this address by now
    const bool in_the_clear = certificates != nullptr && channel.binding().empty();
    return (again && in_the_clear ? io_error(error.message()) : error).with_context(place);
  };
  if (const Status secured = secure(channel, certificates, deadline); !secured.ok())
    return failed(secured.error());
  const Result<std::chrono::milliseconds> lease = prove(channel, secret, certificates != nullptr, deadline);
  if (!lease.ok()) return failed(lease.error());
  return Joined{std::move(channel), *lease};
}

}  // namespace ostro::cluster
