// TimeToken: RFC 3161 requests and answers, by which a time-stamping service says that a text existed at a
// time.
//
// Files in, files out: nothing is fetched. A request is sent by the user (curl --data-binary
// @bundle.json.tsq), and the answer is put beside it.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::bundle {

// The request (DER) for a text. Its nonce is made of the text's hash, so a text has one request.
std::string time_request(std::string_view text);

struct TimeToken {
  std::string time;      // UTC, "2026-11-21T10:04:33Z"
  std::string service;   // subject of the certificate that signed
  bool trusted = false;  // the certificate follows from the authority's that was given
};

// Reads an answer (DER) about `text`. `authority`: PEM certificates that are trusted; empty: none, and the
// signature is only compared with the certificate that the answer holds. kCorrupt, beginning with `where`: it
// is no answer, is about another text, or its signature or certificate does not hold. kInvalidArgument: no
// certificate in `authority`.
Result<TimeToken> read_time_answer(std::string_view answer, std::string_view text,
                                   const std::string& authority, const std::string& where);

}  // namespace ostro::bundle
