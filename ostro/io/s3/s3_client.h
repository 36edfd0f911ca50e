// S3Client: the part of the S3 protocol that is needed for reading: object information, ranges of objects,
// listings.
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

// Keys, endpoint and limits of a server.
struct S3Options {
  std::string access_key, secret_key, session_token;  // without keys requests are anonymous
  std::string region = "us-east-1";
  // "http://host:port", with buckets as path components; empty: Amazon's server of the region
  std::string endpoint;
  std::string ca_bundle;
  int64_t stall_seconds = 30;
  RetryPolicy retry;
};

// Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION (or AWS_DEFAULT_REGION),
// AWS_ENDPOINT_URL_S3 (or AWS_ENDPOINT_URL), AWS_CA_BUNDLE, AWS_MAX_ATTEMPTS and OSTRO_S3_STALL_SECONDS
// through `get`, which returns "" for a variable that is not set. Errors name the variable.
Result<S3Options> s3_options(const std::function<std::string(const char*)>& get);

// "s3://bucket/key"; the key has no "/" at its ends and may be empty.
struct S3Path {
  std::string bucket, key;
  std::string url() const { return key.empty() ? "s3://" + bucket : "s3://" + bucket + "/" + key; }
};
// Parses a URL that begins with s3://; kInvalidArgument when it names no bucket.
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
  std::vector<File> files;           // files directly in the folder
  std::vector<std::string> folders;  // names up to the next "/"
};

// Reads objects. Every call repeats failures that may be temporary, as RetryPolicy says: no connection,
// resets, timeouts,
// status 408, 429 and 5xx, bodies and ranges that were not asked for. If it still fails, the error names the
// object, the range, the last failure and the number of attempts. Status 403, other refusals and 404
// (kNotFound) are errors at once. Thread-safe.
class S3Client {
 public:
  // `http` and `clock` must outlive the client.
  S3Client(S3Options options, HttpClient& http, RetryClock& clock)
      : options_(std::move(options)), http_(http), clock_(clock) {}

  Result<S3Object> head(const S3Path& path);
  // Fills `out` with the bytes from `begin` on. `object` is a result of head() or list(); kCorrupt when the
  // object has another ETag now.
  Status get(const S3Path& path, int64_t begin, std::span<std::byte> out, const S3Object& object,
             std::stop_token stop = {});
  // The entries directly in a folder (key "": the bucket), from all pages of the listing. With `first_only`,
  // at most the first entry.
  Result<S3Listing> list(const S3Path& folder, bool first_only = false);

 private:
  // The judgement of an answer.
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
