// HttpClient by libcurl.
#include <curl/curl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "ostro/base/check.h"
#include "ostro/objects/web/http.h"
#include "ostro/objects/web/http_text.h"

namespace ostro::objects {
namespace {

using Handle = std::unique_ptr<CURL, void (*)(CURL*)>;
using HeaderList = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

struct Transfer {
  const HttpRequest& request;
  HttpResponse& response;
};

size_t on_body(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string& body = transfer.response.body;
  const size_t room = static_cast<size_t>(transfer.request.max_body) - body.size();
  const size_t bytes = size * count;
  body.append(data, std::min(bytes, room));
  transfer.response.body_too_long = bytes > room;
  return bytes > room ? 0 : bytes;  // fewer bytes than given: curl aborts
}

size_t on_header(char* data, size_t size, size_t count, void* user) {
  auto& response = static_cast<Transfer*>(user)->response;
  const std::string_view line(data, size * count);
  const size_t colon = line.find(':');
  if (line.starts_with("HTTP/")) response.headers.clear();  // of a preliminary answer
  if (colon == std::string_view::npos) return line.size();
  std::string name(line.substr(0, colon));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  response.headers[name] = std::string(trimmed(line.substr(colon + 1)));
  return line.size();
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(user)->request.stop.stop_requested() ? 1 : 0;
}

// The file of certificates that the system trusts. libcurl only knows where Debian has it, and a packaged
// program also runs elsewhere. Empty when there is none: libcurl then says so.
const std::string& system_certificates() {
  static const std::string found = [] {
    for (const char* path : {"/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch
                             "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL
                             "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora since 43
                             "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})       // SUSE; others
      if (::access(path, R_OK) == 0) return std::string(path);
    return std::string();
  }();
  return found;
}

class CurlClient final : public HttpClient {
 public:
  explicit CurlClient(const CurlOptions& options) : options_(options) {
    static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
    OSTRO_CHECK(global == CURLE_OK, "libcurl cannot start: {}", curl_easy_strerror(global));
  }

  HttpResponse perform(const HttpRequest& request) override {
    Handle handle = take();
    HttpResponse response;
    Transfer transfer{request, response};
    HeaderList headers(nullptr, curl_slist_free_all);
    for (const std::string& header : request.headers)
      headers.reset(curl_slist_append(headers.release(), header.c_str()));
    char reason[CURL_ERROR_SIZE] = "";
    CURL* curl = handle.get();
    set_up(curl, request);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
    const CURLcode code = curl_easy_perform(curl);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    response.status = static_cast<int>(status);
    if (code != CURLE_OK && !response.body_too_long)
      response.failure = reason[0] != '\0' ? reason : curl_easy_strerror(code);
    give_back(std::move(handle));
    return response;
  }

 private:
  Handle take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      Handle fresh(curl_easy_init(), curl_easy_cleanup);
      OSTRO_CHECK(fresh != nullptr, "libcurl: out of memory");
      return fresh;
    }
    Handle handle = std::move(idle_.back());
    idle_.pop_back();
    return handle;
  }

  void give_back(Handle handle) {
    curl_easy_reset(handle.get());  // connections stay open
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(handle));
  }

  void set_up(CURL* curl, const HttpRequest& request) const {
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    // "a/../b" is a valid key, so the path must not be changed
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options_.connect_seconds));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1024L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                     static_cast<long>(std::max(options_.stall_seconds, request.stall_seconds)));
    if (request.total_ms > 0) curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.total_ms));
    if (request.direct) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    if (request.method == "HEAD") curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    if (request.method == "PUT" || request.method == "POST") {
      curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      curl_easy_setopt(curl, CURLOPT_POSTFIELDS,
                       request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
    }
    if (request.method != "GET" && request.method != "HEAD")
      curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    const std::string& trusted = options_.ca_bundle.empty() ? system_certificates() : options_.ca_bundle;
    if (!trusted.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, trusted.c_str());
    if (!request.access_key.empty()) {
      curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", options_.region).c_str());
      curl_easy_setopt(curl, CURLOPT_USERNAME, request.access_key.c_str());
      curl_easy_setopt(curl, CURLOPT_PASSWORD, request.secret_key.c_str());
    }
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  }

  const CurlOptions options_;
  std::mutex mutex_;
  std::vector<Handle> idle_;
};

}  // namespace

std::unique_ptr<HttpClient> curl_client(const CurlOptions& options) {
  return std::make_unique<CurlClient>(options);
}

}  // namespace ostro::objects
