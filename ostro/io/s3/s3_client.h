// The part of the S3 protocol that reading needs: object information, ranges of objects, listings.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/s3/http.h"
#include "ostro/io/s3/retry.h"

namespace ostro::io {

struct S3Options {
  std::string access_key, secret_key, session_token;  // without keys requests are anonymous
  std::string region = "us-east-1";
  std::string endpoint;  // "http://host:port": buckets are path components there; empty: Amazon's by region
  std::string ca_bundle;
  int64_t stall_seconds = 30;
  RetryPolicy retry;
};

// Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION (or AWS_DEFAULT_REGION),
// AWS_ENDPOINT_URL_S3 (or AWS_ENDPOINT_URL), AWS_CA_BUNDLE, AWS_MAX_ATTEMPTS and OSTRO_S3_STALL_SECONDS
// through `get`, which gives "" for what is not set. Errors name the variable.
Result<S3Options> s3_options(const std::function<std::string(const char*)>& get);

// "s3://bucket/key"; the key has no "/" at its ends and may be empty.
struct S3Path {
  std::string bucket, key;
  std::string url() const { return key.empty() ? "s3://" + bucket : "s3://" + bucket + "/" + key; }
};
Result<S3Path> parse_s3_path(const std::string& url);

struct S3Object {
  int64_t size = 0;
  int64_t modified = 0;  // seconds since 1970
  std::string etag;
};

struct S3Listing {
  struct File {
    std::string name;
    S3Object object;
  };
  std::vector<File> files;           // directly below the prefix
  std::vector<std::string> folders;  // names up to the next "/"
};

// Every call tries again, by the policy, what may pass: no connection, resets, timeouts, 408, 429, 5xx,
// bodies and ranges that are not what was asked for. What remains is an error with the object, the range,
// what went wrong last, and how often. 403, other refusals and 404 (kNotFound) are errors at once.
// Thread-safe.
class S3Client {
 public:
  // Refers to `http` and `clock`.
  S3Client(S3Options options, HttpClient& http, RetryClock& clock)
      : options_(std::move(options)), http_(http), clock_(clock) {}

  Result<S3Object> head(const S3Path& path);
  // Fills `out` with the bytes from `begin` on of an object of that size. kCorrupt when its ETag is another
  // now.
  Status get(const S3Path& path, int64_t begin, std::span<std::byte> out, const S3Object& object,
             std::stop_token stop = {});
  // What is directly below a folder ("" key: the bucket), all pages; with `first_only`, the first entry at
  // most.
  Result<S3Listing> list(const S3Path& folder, bool first_only = false);

 private:
  // What to make of an answer.
  struct Verdict {
    enum { kGood, kRetry, kFail } what = kGood;
    std::string why;  // "status 503 (SlowDown: ...)"
    ErrorCode code = ErrorCode::kIo;
  };
  using Judge = std::function<Verdict(const HttpResponse&)>;
  Result<HttpResponse> request(HttpRequest request, const std::string& what, const Judge& judge);
  static Verdict refusal(const HttpResponse& response);
  HttpRequest new_request(const char* method, const S3Path& path, const std::string& query) const;

  const S3Options options_;
  HttpClient& http_;
  RetryClock& clock_;
};

}  // namespace ostro::io
