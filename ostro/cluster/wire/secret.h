// proof: the proofs by which a member and a coordinator show each other that they know a secret, without
// sending it.
#pragma once

#include <string>
#include <string_view>

namespace ostro::cluster {

// The proof that a side sends. `role` keeps one side's proof from being replayed as the other's, both nonces
// (base/sha256.h) keep an earlier connection's from being replayed in this one.
std::string proof(std::string_view secret, std::string_view role, std::string_view coordinator_nonce,
                  std::string_view member_nonce);

}  // namespace ostro::cluster
