#include "ostro/objects/web/key_servers.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <pugixml.hpp>
#include <span>

#include "ostro/base/run_program.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/objects/web/http_text.h"

namespace ostro::objects {
namespace {

constexpr int64_t kFirstLookMs = 1000, kAnswerMs = 5'000;
constexpr std::chrono::seconds kProgramLimit{60};
constexpr size_t kMostRoleBytes = 128;

bool may_pass(const HttpResponse& r) {
  return r.status == 0 || r.status == 408 || r.status == 429 || r.status >= 500 || !r.failure.empty();
}

HttpResponse ask_again(const KeyAsker& by, HttpRequest request) {
  request.stop = by.stop;
  for (int attempt = 1;; ++attempt) {
    if (by.stop.stop_requested()) return {.status = 0, .failure = "this process ends"};
    HttpResponse response = by.http.perform(request);
    if (attempt >= by.attempts || !may_pass(response)) return response;
    by.clock.sleep_ms(RetryPolicy().delay_ms(attempt, request.url), request.stop);
  }
}

bool is_good(const HttpResponse& r) { return r.status == 200 && r.failure.empty(); }

std::string reason(const HttpResponse& r) {
  if (r.failure.empty() && r.status == 200 && trimmed(r.body).empty()) return "an empty answer";
  return r.failure.empty() ? fmt::format("status {}", r.status) : r.failure;
}

// What a server says, for an error: it may say anything.
std::string quoted(std::string text) {
  constexpr size_t kMost = 300;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  for (char& c : text) c = c < ' ' || c > '~' ? '?' : c;
  return text;
}

// With what an STS says about itself.
std::string sts_reason(const HttpResponse& r) {
  pugi::xml_document document;
  if (r.failure.empty() && document.load_buffer(r.body.data(), r.body.size())) {
    const pugi::xml_node error = document.child("ErrorResponse").child("Error");
    if (error)
      return fmt::format("{} ({}: {})", reason(r), quoted(error.child_value("Code")),
                         quoted(error.child_value("Message")));
  }
  return reason(r);
}

std::string word(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// 0: there is no end. A text that is not understood is no such thing: the keys would never be renewed.
Result<int64_t> parse_end(const std::string& text, const std::string& url) {
  if (text.empty()) return int64_t{0};
  if (const auto end = parse_zoned_date(text)) return *end;
  return corrupt(
      fmt::format("{}: the keys have the Expiration \"{}\", which is no date like "
                  "2009-10-12T17:50:30Z or 2009-10-12T19:50:30+02:00",
                  url, quoted(text)));
}

bool is_loopback(const std::string& host) {
  in_addr address{};
  return host == "localhost" || host == "[::1]" ||
         (::inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

}  // namespace

Result<S3Keys> parse_container_keys(std::string_view text, const std::string& url) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return corrupt(fmt::format("{}: the answer is no JSON object", url));
  if (const std::string code = word(json, "Code"); !code.empty() && code != "Success")
    return io_error(
        fmt::format("{}: no keys for s3://: {} {}", url, quoted(code), quoted(word(json, "Message"))));
  S3Keys keys{word(json, "AccessKeyId"), word(json, "SecretAccessKey"), word(json, "Token")};
  if (keys.access_key.empty() || keys.secret_key.empty())
    return corrupt(fmt::format("{}: the answer has no AccessKeyId and SecretAccessKey", url));
  if (keys.session_token.empty()) keys.session_token = word(json, "SessionToken");
  const auto end = json.find("Expiration");
  if (end == json.end() || end->is_null()) return keys;
  ASSIGN_OR_RETURN(keys.expires, parse_end(end->is_string() ? end->get<std::string>() : end->dump(), url));
  return keys;
}

Result<S3Keys> parse_sts_keys(std::string_view xml, const std::string& url) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size()))
    return corrupt(fmt::format("{}: the answer is no XML", url));
  const pugi::xml_node given = document.child("AssumeRoleWithWebIdentityResponse")
                                   .child("AssumeRoleWithWebIdentityResult")
                                   .child("Credentials");
  S3Keys keys{given.child_value("AccessKeyId"), given.child_value("SecretAccessKey"),
              given.child_value("SessionToken")};
  if (keys.access_key.empty() || keys.secret_key.empty() || keys.session_token.empty())
    return corrupt(fmt::format("{}: the answer has no AccessKeyId, SecretAccessKey and SessionToken", url));
  ASSIGN_OR_RETURN(keys.expires, parse_end(given.child_value("Expiration"), url));
  return keys;
}

Status check_container_url(const std::string& url) {
  const std::string server = server_of_url(url);
  const std::string_view http = "http://", https = "https://";
  const bool plain = url.find('@') == std::string::npos;  // no user's name, which could be taken for a host
  if (plain && url.starts_with(https)) return {};
  if (plain && url.starts_with(http)) {
    std::string host = server.substr(http.size());
    const size_t port = host.rfind(':');
    if (port != std::string::npos && host.find(']', port) == std::string::npos) host.resize(port);
    if (is_loopback(host)) return {};
    for (const char* known : {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"})
      if (host == known) return {};
  }
  return invalid_argument(fmt::format(
      "AWS_CONTAINER_CREDENTIALS_FULL_URI: {}: use https://, or http:// to this machine, "
      "169.254.170.2, 169.254.170.23 or [fd00:ec2::23]; elsewhere the token and the keys would be "
      "sent in clear text",
      server));
}

Result<S3Keys> ask_container(const KeyAsker& by, const std::string& url, std::string_view token) {
  HttpRequest request{.url = url};
  request.max_body = kMostKeyBytes;
  request.total_ms = kAnswerMs;
  request.direct = true;
  const std::string server = server_of_url(url);
  if (!is_one_line(trimmed(token)))
    return corrupt(fmt::format("{}: the token for it has line ends or other control characters", server));
  if (!token.empty()) request.headers.push_back(fmt::format("Authorization: {}", trimmed(token)));
  const HttpResponse response = ask_again(by, request);
  if (!is_good(response)) return io_error(fmt::format("{}: no keys for s3://: {}", server, reason(response)));
  return parse_container_keys(response.body, server);
}

Result<S3Keys> ask_sts(const KeyAsker& by, const std::string& url, const WebIdentity& identity) {
  const auto token = io::local_file_system().read_file(identity.token_file, kMostKeyBytes);
  if (!token.ok()) return token.error().with_context(fmt::format("the token for the role {}", identity.role));
  const std::string form = fmt::format(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}&WebIdentityToken={}",
      percent_encoded(identity.role, false), percent_encoded(identity.session, false),
      percent_encoded(trimmed(*token), false));
  HttpRequest request{.method = "POST", .url = url + "/"};
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = std::as_bytes(std::span(form));
  request.max_body = kMostKeyBytes;
  request.total_ms = kAnswerMs;
  const HttpResponse response = ask_again(by, request);
  if (!is_good(response))
    return io_error(fmt::format("{}: no keys for s3:// of the role {}, by the token in {}: {}", url,
                                identity.role, identity.token_file, sts_reason(response)));
  return parse_sts_keys(response.body, url);
}

Result<InstanceKeys> ask_instance(const KeyAsker& by, const std::string& url, bool known) {
  HttpRequest request{.method = "PUT", .url = url + "/latest/api/token"};
  request.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 300"};
  request.max_body = kMostKeyBytes;
  request.total_ms = known ? kAnswerMs : kFirstLookMs;
  request.direct = true;
  const HttpResponse token = ask_again({by.http, by.clock, known ? by.attempts : 1, by.stop}, request);
  if (!is_good(token) || trimmed(token.body).empty() || !is_one_line(trimmed(token.body))) {
    const std::string why = token.status == 0
                                ? fmt::format("nothing answers at {} ({})", url, token.failure)
                                : fmt::format("{} gives no token (IMDSv2): {}", url, reason(token));
    return known ? io_error(why) : not_found(why);
  }
  const std::string folder = url + "/latest/meta-data/iam/security-credentials/";
  request.method = "GET", request.url = folder, request.total_ms = kAnswerMs;
  request.headers = {fmt::format("X-aws-ec2-metadata-token: {}", trimmed(token.body))};
  const HttpResponse roles = ask_again(by, request);
  if (roles.status == 404) return not_found(fmt::format("this machine has no role ({})", folder));
  const std::string role(trimmed(roles.body.substr(0, roles.body.find('\n'))));
  if (!is_good(roles) || role.empty()) return io_error(fmt::format("{}: no role: {}", folder, reason(roles)));
  if (!is_one_line(role) || role.size() > kMostRoleBytes)
    return corrupt(fmt::format("{}: \"{}\" is no name of a role", folder, quoted(role)));
  request.url = folder + percent_encoded(role, false);
  const HttpResponse given = ask_again(by, request);
  if (!is_good(given)) return io_error(fmt::format("{}: no keys for s3://: {}", request.url, reason(given)));
  ASSIGN_OR_RETURN(S3Keys keys, parse_container_keys(given.body, request.url));
  return InstanceKeys{role, std::move(keys)};
}

Result<S3Keys> ask_program(const std::string& command, const std::string& of, const std::stop_token& stop) {
  std::optional<int> status;
  const auto until = std::chrono::steady_clock::now() + kProgramLimit;
  bool late = false;
  // What it says to people is not part of its answer.
  ProgramCall call{{"/bin/sh", "-c", fmt::format("{{ {}\n}} 2>/dev/null", command)}, "", std::nullopt};
  call.status = &status;
  call.stop = [&] {
    late = std::chrono::steady_clock::now() >= until;
    return late || stop.stop_requested();
  };
  const auto written = run_program(call);
  if (!written.ok()) {
    std::string why = "was killed by a signal; run it to see why";
    if (late) why = fmt::format("did not end by itself within {} s", kProgramLimit.count());
    if (!late && stop.stop_requested()) why = "was ended, since this process ends";
    if (status) why = fmt::format("ended with status {}; run it to see why", *status);
    return io_error(fmt::format("{}: no keys for s3://: the command {}", of, why));
  }
  const auto json = nlohmann::json::parse(*written, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("Version", nlohmann::json()) != 1)
    return corrupt(fmt::format("{}: the command did not write JSON with \"Version\": 1", of));
  return parse_container_keys(*written, of);
}

}  // namespace ostro::objects
