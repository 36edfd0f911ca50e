#include "ostro/cluster/relay_request.h"

#include <fmt/format.h>

#include "ostro/base/hex_digits.h"
#include "ostro/base/sha256.h"
#include "ostro/cluster/wire/secret.h"

namespace ostro::cluster {
namespace {

constexpr size_t kGroupBytes = sizeof(Sha256Digest), kNonceBytes = sizeof(Nonce);
constexpr size_t kNumber = 8;  // and the length of a text
constexpr size_t kRequestBytes =
    1 + (kNumber + kGroupBytes) + 2 * kNumber + (kNumber + kNonceBytes) + (kNumber + sizeof(Sha256Digest));
static_assert(kRequestBytes % 256 != kTlsFirstByte && kRequestBytes <= kMostBytesOfStranger,
              "the length comes first on the wire, and its lowest byte first");

std::string relay_proof(const RelayRequest& request, std::string_view secret,
                        std::string_view coordinator_nonce) {
  const std::string role =
      fmt::format("relay {} {} {}", to_hex_digits(request.group), request.own, request.peer);
  return proof(secret, role, coordinator_nonce, request.nonce, "");
}

}  // namespace

std::string relay_message(const RelayRequest& request, std::string_view secret,
                          std::string_view coordinator_nonce) {
  return Message(Kind::kRelay)
      .text(request.group)
      .number(request.own)
      .number(request.peer)
      .text(request.nonce)
      .text(relay_proof(request, secret, coordinator_nonce))
      .bytes();
}

Result<RelayRequest> read_relay(MessageReader& reader, std::string_view secret,
                                std::string_view coordinator_nonce) {
  RelayRequest request;
  request.group = reader.text();
  request.own = reader.number();
  request.peer = reader.number();
  request.nonce = reader.text();
  const std::string_view its_proof = reader.text();
  const bool sane = request.group.size() == kGroupBytes && request.nonce.size() == kNonceBytes &&
                    request.own >= 0 && request.peer >= 0 && request.own != request.peer;
  if (!reader.done() || !sane) return corrupt("it does not follow the protocol of a worker");
  if (!same_code(its_proof, relay_proof(request, secret, coordinator_nonce)))
    return invalid_argument("it asks for the relay with another secret than this coordinator's");
  return request;
}

}  // namespace ostro::cluster
