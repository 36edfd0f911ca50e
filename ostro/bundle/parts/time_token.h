// TimeToken: RFC 3161 requests and answers, by which a time-stamping service says that a text existed at a
// time.
//
// Nothing here uses the network: the user sends the request file (curl --data-binary @bundle.json.tsq) and
// puts the answer beside it. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::bundle {

// Returns the request (DER) for a text. Its nonce is made from the text's hash, so a text always gets the
// same request.
std::string time_request(std::string_view text);

struct TimeToken {
  std::string time;      // UTC, "2026-11-21T10:04:33Z"
  std::string service;   // subject of the certificate that signed
  bool trusted = false;  // the certificate follows from one of `authority`
};

// Reads an answer (DER) about `text`. `authority` has the trusted certificates (PEM). When it is empty, the
// signature is only checked with the certificate in the answer. Errors: kCorrupt, which begins with `where`,
// when the bytes are no answer, are about another text, or have a signature or certificate that is not valid;
// kInvalidArgument when `authority` has no certificate.
Result<TimeToken> read_time_answer(std::string_view answer, std::string_view text,
                                   const std::string& authority, const std::string& where);

}  // namespace ostro::bundle
