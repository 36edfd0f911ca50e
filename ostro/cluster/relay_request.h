// RelayRequest: what a worker asks of a coordinator that is to join it with another worker.
//
// It comes in place of kProof, on a connection without TLS also where the job has it: the workers encrypt
// what they say to each other. So it has all that proves the secret, and is valid on this connection only,
// because of the coordinator's nonce.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/cluster/messages/message.h"

namespace ostro::cluster {

struct RelayRequest {
  std::string group;           // its hash, 32 bytes
  int64_t own = 0, peer = -1;  // ranks in the group
  std::string nonce;           // of the worker, 32 bytes
};

// Builds a kRelay. Its first byte on the wire is never that of a TLS connection (kTlsFirstByte).
std::string relay_message(const RelayRequest& request, std::string_view secret,
                          std::string_view coordinator_nonce);
// Reads the fields of a kRelay and checks its proof. Errors: kCorrupt when the fields are wrong;
// kInvalidArgument when the proof is.
Result<RelayRequest> read_relay(MessageReader& reader, std::string_view secret,
                                std::string_view coordinator_nonce);

// With which a client of TLS begins: a record of the handshake (RFC 8446, 5.1).
inline constexpr char kTlsFirstByte = 0x16;

}  // namespace ostro::cluster
