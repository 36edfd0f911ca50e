// proof: the proofs by which a member and a coordinator show each other that they know a secret, without
// sending it.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::cluster {

// Returns the proof that a side sends: an HMAC with the secret. `role` keeps the proof of one side from being
// replayed as that of the other; both nonces (base/sha256.h) keep the proof of an earlier connection from
// being replayed in this one; `binding` (Channel::binding) keeps one from being passed on by another
// connection. A pure function.
std::string proof(std::string_view secret, std::string_view role, std::string_view coordinator_nonce,
                  std::string_view member_nonce, std::string_view binding);

// With TLS a process that connects is shown a signature that follows from the secret, and can test guesses
// with it elsewhere. Error: kInvalidArgument for a secret that is too short for that. An empty one is the
// business of tls::Certificates.
Status check_secret(std::string_view secret, bool tls);

}  // namespace ostro::cluster
