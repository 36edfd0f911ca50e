// HttpClient: an interface for HTTP requests, so that code that uses HTTP can be tested without a network.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace ostro::objects {

struct HttpRequest {
  std::string method = "GET";  // or HEAD, PUT, POST, DELETE
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::span<const std::byte> body;   // of PUT and POST; must live until the request is done
  // For AWS Signature Version 4. Without an access key the request is not signed.
  std::string access_key, secret_key;
  int64_t max_body = 0;       // bytes; a longer body is cut, see HttpResponse::body_too_long
  int64_t stall_seconds = 0;  // of this request, when more than the client's: the server works meanwhile
  int64_t total_ms = 0;       // in which all must be done; 0: no such limit
  bool direct = false;        // proxies of the environment are not used: the server is on this machine's link
  std::stop_token stop;       // stops the transfer, which then fails
};

struct HttpResponse {
  int status = 0;                              // 0: no answer came
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  // the reason why there is no complete answer (no connection, reset, timeout, short body); empty if there is
  // one
  std::string failure;
  bool body_too_long = false;  // the body was cut at max_body
};

// Performs requests. A failure is in HttpResponse::failure, not in an exception. Thread-safe.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual HttpResponse perform(const HttpRequest& request) = 0;
};

struct CurlOptions {
  std::string region;     // for signatures
  std::string ca_bundle;  // file of certificates to trust; empty: the system's
  int64_t connect_seconds = 10;
  int64_t stall_seconds = 30;  // a transfer fails after this long below 1 KiB/s
};
// An HttpClient that uses libcurl and keeps connections open between requests.
std::unique_ptr<HttpClient> curl_client(const CurlOptions& options);

}  // namespace ostro::objects
