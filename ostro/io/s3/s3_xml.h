// The XML documents in which an S3 server answers.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/io/s3/s3_client.h"

namespace ostro::io {

// The body of a refusal; empty strings when it is not one.
struct S3Message {
  std::string code, text;  // "SlowDown", "Please reduce your request rate."
};
S3Message parse_s3_message(std::string_view body);

// A page of ListObjectsV2 below `prefix`. kCorrupt for anything else, e.g. half of one.
struct S3Page {
  S3Listing listing;
  std::string next_token;  // empty: the last page
};
Result<S3Page> parse_s3_page(std::string_view body, std::string_view prefix);

}  // namespace ostro::io
