// Gate: decides which requests a server answers.
//
// On a loopback address every program of this machine may ask. A browser there can be led by a foreign page
// to a name that points to this machine, so the request's Host has to be a loopback name. On other addresses
// each request needs the token: as ?token=... or as "Authorization: Bearer ...".
#pragma once

#include <optional>
#include <string>

#include "ostro/http/message.h"

namespace ostro::http {

class Gate {
 public:
  // An empty token: a gate for a loopback address.
  explicit Gate(std::string token) : token_(std::move(token)) {}

  // The answer to a request that is turned away; nothing if it may pass. Any thread.
  std::optional<Response> refusal(const Request& request) const;

 private:
  const std::string token_;
};

// 32 hexadecimal digits that cannot be guessed.
std::string new_token();

}  // namespace ostro::http
