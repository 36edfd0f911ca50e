#include "ostro/objects/s3/s3_client.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/objects/s3/s3_xml.h"
#include "ostro/objects/web/http_text.h"

namespace ostro::objects {
namespace {

constexpr int64_t kMaxMessage = 1 << 20;   // body of an error
constexpr int64_t kMaxListing = 16 << 20;  // a page has at most 1000 names of 1 KiB
constexpr const char* kEmptySha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

bool is_expired(std::string_view code) {
  return code == "ExpiredToken" || code == "ExpiredTokenException" || code == "TokenRefreshRequired" ||
         code == "InvalidToken";
}

// Whether an answer says that the keys have expired. One to HEAD has no body that would: 400 can hardly mean
// anything else, and 403 is also the answer to who may not list, for each object that is not there.
std::optional<Credentials::Refused> refused_keys(const HttpRequest& request, const HttpResponse& response) {
  const int status = response.status;
  if (status != 400 && status != 401 && status != 403) return std::nullopt;
  if (request.method == "HEAD")
    return status == 400 ? Credentials::Refused::kExpired : Credentials::Refused::kNotSaid;
  if (!is_expired(parse_s3_message(response.body).code)) return std::nullopt;
  return Credentials::Refused::kExpired;
}

HttpRequest with_keys(const HttpRequest& request, const S3Keys& keys, const std::string& body_sha256) {
  HttpRequest out = request;
  if (keys.access_key.empty()) return out;
  out.access_key = keys.access_key, out.secret_key = keys.secret_key;
  out.headers.push_back(fmt::format("x-amz-content-sha256: {}", body_sha256));
  if (!keys.session_token.empty())
    out.headers.push_back(fmt::format("x-amz-security-token: {}", keys.session_token));
  return out;
}

std::optional<int64_t> as_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Result<S3Options> s3_options(const std::function<std::string(const char*)>& get) {
  const auto either = [&get](const char* first, const char* second) {
    std::string value = get(first);
    return value.empty() ? get(second) : value;
  };
  S3Options options;
  ASSIGN_OR_RETURN(options.region, region_of(get));
  ASSIGN_OR_RETURN(options.credentials, credential_places(get, options.region));
  options.endpoint = either("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
  while (options.endpoint.ends_with('/')) options.endpoint.pop_back();
  if (!options.endpoint.empty() && !options.endpoint.starts_with("http://") &&
      !options.endpoint.starts_with("https://"))
    return invalid_argument(
        fmt::format("AWS_ENDPOINT_URL: \"{}\" does not begin with http:// or https://", options.endpoint));
  options.ca_bundle = get("AWS_CA_BUNDLE");
  const auto number = [&get](const char* name, int64_t low, int64_t high, auto& value) -> Status {
    const std::string text = get(name);
    if (text.empty()) return {};
    const std::optional<int64_t> read = as_number(text);
    if (!read || *read < low || *read > high)
      return invalid_argument(fmt::format("{}: \"{}\" is not a number from {} to {}", name, text, low, high));
    value = static_cast<std::remove_reference_t<decltype(value)>>(*read);
    return {};
  };
  RETURN_IF_ERROR(number("AWS_MAX_ATTEMPTS", 1, 1000, options.retry.attempts));
  RETURN_IF_ERROR(number("OSTRO_S3_STALL_SECONDS", 1, 3600, options.stall_seconds));
  RETURN_IF_ERROR(number("OSTRO_S3_LEASE_SECONDS", 5, 3600, options.lease_seconds));
  return options;
}

Result<S3Options> s3_options_of_process() {
  return s3_options([](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  });
}

Result<S3Path> parse_s3_path(const std::string& url) {
  constexpr std::string_view kScheme = "s3://";
  OSTRO_CHECK(url.starts_with(kScheme), "{} does not begin with s3://", url);
  std::string_view rest = std::string_view(url).substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  S3Path path{std::string(rest.substr(0, slash)), ""};
  rest.remove_prefix(slash);
  while (rest.starts_with('/')) rest.remove_prefix(1);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  path.key = rest;
  if (path.bucket.empty()) return invalid_argument(fmt::format("{}: names no bucket: s3://bucket/key", url));
  return path;
}

HttpRequest S3Client::new_request(const char* method, const S3Path& path, const std::string& query) const {
  const std::string key = percent_encoded(path.key, /*keep_slash=*/true);
  std::string url;
  if (!options_.endpoint.empty()) {
    url = fmt::format("{}/{}/{}", options_.endpoint, path.bucket, key);
  } else {
    const char* domain = options_.region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
    // The certificate for bucket names as host names does not cover names with a dot.
    url = path.bucket.find('.') == std::string::npos
              ? fmt::format("https://{}.s3.{}.{}/{}", path.bucket, options_.region, domain, key)
              : fmt::format("https://s3.{}.{}/{}/{}", options_.region, domain, path.bucket, key);
  }
  if (!query.empty()) url += "?" + query;
  HttpRequest request;
  request.method = method;
  request.url = std::move(url);
  request.max_body = kMaxMessage;
  return request;
}

// The verdict on any answer that is not a success.
S3Client::Verdict S3Client::refusal(const HttpResponse& response, bool reads) const {
  if (response.status == 0) return {Verdict::kRetry, response.failure};
  const S3Message message = parse_s3_message(response.body);
  std::string why = fmt::format("status {}", response.status);
  if (!message.code.empty()) why += fmt::format(" ({}: {})", message.code, message.text);
  const int status = response.status;
  if (status == 501 || status == 505) return {Verdict::kFail, why, ErrorCode::kUnsupported};
  if (status == 408 || status == 429 || status >= 500 || message.code == "RequestTimeout")
    return {Verdict::kRetry, why};
  if (status < 300 && !response.failure.empty()) return {Verdict::kRetry, response.failure};
  if (status == 404) return {Verdict::kFail, why, ErrorCode::kNotFound};
  if (status == 412) return {Verdict::kFail, "changed while it was read", ErrorCode::kCorrupt};
  if (credentials_.place().empty() && (status == 401 || status == 403))
    why += fmt::format("; the request had no keys, since there are none: {}", credentials_.tried());
  else if (is_expired(message.code))
    why += fmt::format("; the keys in {} have expired or are not valid: put new ones there",
                       credentials_.place());
  else if (status == 401 || status == 403)
    why += fmt::format("; the keys in {} may not {}", credentials_.place(),
                       reads ? "read it (or it does not exist)" : "write it");
  if (const std::string region = header(response, "x-amz-bucket-region");
      (status / 100 == 3 || status == 400) && !region.empty())
    why += fmt::format("; the bucket is in region {}: set AWS_REGION", region);
  return {Verdict::kFail, why};
}

// Sends the request until `judge` calls an answer good or final, the attempts are used up, or the next pause
// would exceed the total time. `what` names the request in errors, and seeds the jitter of the pauses.
Result<HttpResponse> S3Client::request(HttpRequest request, const std::string& what, const Judge& judge,
                                       const MayGoOn& may_go_on) {
  const int64_t begin = clock_.now_ms();
  const std::string hash = request.body.empty() ? kEmptySha256 : sha256_hex(request.body);
  if (!request.stop.stop_possible()) request.stop = stop_.get_token();
  bool renewed = false;
  for (int attempt = 1;; ++attempt) {
    if (may_go_on) RETURN_IF_ERROR(may_go_on());
    const auto keys = credentials_.keys();
    if (!keys.ok()) return keys.error().with_context(what);
    HttpResponse response = http_.perform(with_keys(request, *keys, hash));
    const Verdict verdict = judge(response);
    const auto refused = refused_keys(request, response);
    if (!renewed && verdict.what == Verdict::kFail && refused) {
      const auto others = credentials_.renew(*keys, *refused);
      if (!others.ok()) return others.error().with_context(what);
      renewed = *others;
      if (renewed) continue;
    }
    if (verdict.what == Verdict::kGood) return response;
    if (verdict.what == Verdict::kFail) return Error(verdict.code, fmt::format("{}: {}", what, verdict.why));
    const int64_t delay = options_.retry.delay_ms(attempt, what);
    const int64_t spent = clock_.now_ms() - begin;
    if (request.stop.stop_requested() || attempt >= options_.retry.attempts ||
        spent + delay > options_.retry.max_total_ms)
      return io_error(fmt::format("{}: {}; given up after {} attempts in {:.1f} s", what, verdict.why,
                                  attempt, static_cast<double>(spent) / 1000));
    if (attempt == 2)  // a second failure in a row is no hiccup: who waits should know for what
      log_info(fmt::format("{}: {}; trying again, {} times at most", what, verdict.why,
                           options_.retry.attempts - attempt));
    clock_.sleep_ms(delay, request.stop);
  }
}

Result<S3Object> S3Client::head(const S3Path& path) {
  const auto object = [](const HttpResponse& response) -> std::optional<S3Object> {
    const auto size = as_number(header(response, "content-length"));
    const auto modified = parse_http_date(header(response, "last-modified"));
    if (!size || !modified) return std::nullopt;
    return S3Object{*size, *modified, header(response, "etag"), header(response, "x-amz-meta-ostro-write"),
                    parse_http_date(header(response, "date")).value_or(0)};
  };
  ASSIGN_OR_RETURN(const HttpResponse response,
                   request(new_request("HEAD", path, ""), path.url(), [&](const HttpResponse& r) -> Verdict {
                     if (r.status != 200 || !r.failure.empty()) return refusal(r);
                     if (object(r)) return {};
                     return {Verdict::kRetry, "the answer lacks a valid Content-Length or Last-Modified"};
                   }));
  return *object(response);
}

Status S3Client::get(const S3Path& path, int64_t begin, std::span<std::byte> out, const S3Object& object,
                     std::stop_token stop) {
  if (out.empty()) return {};
  const int64_t end = begin + static_cast<int64_t>(out.size());
  HttpRequest get = new_request("GET", path, "");
  get.headers.push_back(fmt::format("Range: bytes={}-{}", begin, end - 1));
  if (!object.etag.empty()) get.headers.push_back("If-Match: " + object.etag);
  get.max_body = std::max(kMaxMessage, end - begin);
  get.stop = std::move(stop);
  const std::string range = fmt::format("bytes {}-{}/{}", begin, end - 1, object.size);
  const auto judge = [&](const HttpResponse& r) -> Verdict {
    const bool whole = r.status == 200 && begin == 0 && end == object.size;
    if (r.status != 206 && r.status != 200) return refusal(r);
    if (r.status == 200 && !whole)
      return {Verdict::kRetry, "the server ignored the range that was asked for"};
    if (r.status == 206 && header(r, "content-range") != range)
      return {Verdict::kRetry, fmt::format("the answer has Content-Range \"{}\", not \"{}\"",
                                           header(r, "content-range"), range)};
    if (!r.failure.empty()) return {Verdict::kRetry, r.failure};
    if (r.body_too_long || r.body.size() != out.size())
      return {Verdict::kRetry, fmt::format("the body has {}{} bytes, not {}",
                                           r.body_too_long ? "more than " : "", r.body.size(), out.size())};
    return {};
  };
  ASSIGN_OR_RETURN(const HttpResponse response,
                   request(std::move(get), fmt::format("{}: bytes [{}, {})", path.url(), begin, end), judge));
  std::memcpy(out.data(), response.body.data(), out.size());
  return {};
}

Result<S3Listing> S3Client::list(const S3Path& folder, bool first_only) {
  const std::string prefix = folder.key.empty() ? "" : folder.key + "/";
  const std::string what = fmt::format("s3://{}/{}: listing", folder.bucket, prefix);
  S3Listing all;
  for (std::string token;;) {
    // The signature requires the parameters in bytewise order of their names.
    std::string query = token.empty() ? "" : "continuation-token=" + percent_encoded(token, false) + "&";
    query += fmt::format("delimiter=%2F&list-type=2{}&prefix={}", first_only ? "&max-keys=2" : "",
                         percent_encoded(prefix, false));
    HttpRequest get = new_request("GET", {folder.bucket, ""}, query);
    get.max_body = kMaxListing;
    S3Page page;
    RETURN_IF_ERROR(request(std::move(get), what, [&](const HttpResponse& r) -> Verdict {
      if (r.status != 200 || !r.failure.empty()) {
        Verdict verdict = refusal(r);
        // Not kNotFound, which callers treat as an empty folder.
        if (verdict.code == ErrorCode::kNotFound) verdict.code = ErrorCode::kInvalidArgument;
        return verdict;
      }
      auto parsed = parse_s3_page(r.body, prefix);
      if (!parsed.ok()) return {Verdict::kRetry, parsed.error().message()};
      page = std::move(*parsed);
      return {};
    }));
    for (auto& file : page.listing.files) all.files.push_back(std::move(file));
    for (auto& name : page.listing.folders) all.folders.push_back(std::move(name));
    if (page.next_token.empty() || first_only) return all;
    if (page.next_token == token)
      return corrupt(fmt::format("{}: the server gives the continuation token \"{}\" again", what, token));
    token = std::move(page.next_token);
  }
}

}  // namespace ostro::objects
