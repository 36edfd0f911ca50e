// How two sides prove to each other that they know a secret, without sending it.
#pragma once

#include <string>
#include <string_view>

namespace ostro::cluster {

// Takes as long for unequal strings of one length as for equal ones, so that nobody can guess a proof byte by
// byte.
bool equal_in_constant_time(std::string_view a, std::string_view b);

// 32 bytes that nobody can foresee.
std::string nonce();

// What a side sends as proof. `role` keeps one side's proof from being played back as the other's, both
// nonces keep an earlier connection's from being played back in this one.
std::string proof(std::string_view secret, std::string_view role, std::string_view coordinator_nonce,
                  std::string_view member_nonce);

}  // namespace ostro::cluster
