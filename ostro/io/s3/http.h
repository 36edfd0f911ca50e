// One HTTP request and its answer, so that what speaks HTTP can be tested without a network.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace ostro::io {

struct HttpRequest {
  std::string method = "GET";  // or HEAD
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  int64_t max_body = 0;              // bytes; more is an answer's failure, see HttpResponse::body_too_long
  std::stop_token stop;              // ends the transfer, as a failure
};

struct HttpResponse {
  int status = 0;                              // 0: no answer came
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string failure;  // not empty: why no whole answer came (no connection, reset, timeout, short body)
  bool body_too_long = false;  // it was cut at max_body
};

// Thread-safe.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual HttpResponse perform(const HttpRequest& request) = 0;
};

struct CurlOptions {
  // AWS Signature Version 4 for S3; without access key requests are not signed.
  std::string access_key, secret_key, region;
  std::string ca_bundle;  // file of certificates to trust; empty: the system's
  int64_t connect_seconds = 10;
  int64_t stall_seconds = 30;  // so long below 1 KiB/s is a failure
};
// An HttpClient by libcurl, which keeps connections open between requests.
std::unique_ptr<HttpClient> curl_client(const CurlOptions& options);

}  // namespace ostro::io
