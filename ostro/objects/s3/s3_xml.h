// parse_s3_page, parse_s3_message: parse the XML answers of an S3 server. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/objects/s3/s3_client.h"

namespace ostro::objects {

// The message in the body of a refusal. Empty strings when the body has none.
struct S3Message {
  std::string code, text;  // "SlowDown", "Please reduce your request rate."
};
S3Message parse_s3_message(std::string_view body);

// The text of the element `child` of an answer whose outermost element is `root`; "" for any other answer.
std::string xml_value(std::string_view body, const char* root, const char* child);

// An upload in parts that was begun and not finished.
struct S3Unfinished {
  std::string key, upload;
  int64_t begun = 0;  // seconds since 1970
};
// Parses a page of ListMultipartUploads. kCorrupt for anything else.
struct S3UploadsPage {
  std::vector<S3Unfinished> uploads;
  std::string next_key, next_upload;  // where the next page begins; no key: this is the last one
};
Result<S3UploadsPage> parse_s3_uploads(std::string_view body);

// Parses a page of ListObjectsV2 below `prefix`. kCorrupt for anything else, e.g. a truncated page.
struct S3Page {
  S3Listing listing;
  std::string next_token;  // empty: the last page
};
Result<S3Page> parse_s3_page(std::string_view body, std::string_view prefix);

}  // namespace ostro::objects
