#include "ostro/io/s3/credentials.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/path.h"
#include "ostro/io/s3/s3_text.h"

namespace ostro::io {
namespace {

constexpr int64_t kMostKeyBytes = 1 << 20;
constexpr int64_t kRenewBefore = 300;  // seconds before the end at which keys are read again

// The name in "[name]"; nothing for another line.
std::optional<std::string_view> profile_in(std::string_view line) {
  if (!line.starts_with('[') || !line.ends_with(']')) return std::nullopt;
  return trimmed(line.substr(1, line.size() - 2));
}

template <typename F>
void for_lines(std::string_view text, const F& f) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    f(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
}

std::string profiles_text(std::string_view text) {
  std::string out;
  for_lines(text, [&](std::string_view line) {
    if (const auto name = profile_in(line)) out += fmt::format("{}{}", out.empty() ? "" : ", ", *name);
  });
  return out.empty() ? "it has no profiles" : "it has the profiles " + out;
}

}  // namespace

Result<CredentialPlaces> credential_places(const std::function<std::string(const char*)>& get) {
  CredentialPlaces places;
  S3Keys& given = places.given;
  given = {get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY"), get("AWS_SESSION_TOKEN")};
  if (given.access_key.empty() != given.secret_key.empty())
    return invalid_argument(
        fmt::format("{} is set and {} is not; set both, or none for public buckets",
                    given.access_key.empty() ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                    given.access_key.empty() ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY"));
  if (!given.access_key.empty()) return places;
  places.profile = get("AWS_PROFILE");
  places.file = get("AWS_SHARED_CREDENTIALS_FILE");
  places.named = !places.profile.empty() || !places.file.empty();
  if (places.file.empty())
    if (const std::string home = get("HOME"); !home.empty()) {
      const std::string usual = join_path(home, ".aws/credentials");
      const auto there = local_file_system().exists(usual);
      if (places.named || (there.ok() && *there)) places.file = usual;
    }
  if (places.profile.empty()) places.profile = "default";
  places.url = get("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (places.url.empty())
    if (const std::string relative = get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !relative.empty())
      places.url = "http://169.254.170.2" + relative;
  places.token = get("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  places.token_file = get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  return places;
}

Result<S3Keys> parse_credentials_file(std::string_view text, const std::string& path,
                                      const std::string& profile) {
  S3Keys keys;
  bool inside = false;
  for_lines(text, [&](std::string_view line) {
    if (line.empty() || line[0] == '#' || line[0] == ';') return;
    if (const auto name = profile_in(line)) {
      inside = *name == profile;
      return;
    }
    const size_t equal = line.find('=');
    if (!inside || equal == std::string_view::npos) return;
    const std::string_view name = trimmed(line.substr(0, equal));
    const std::string value(trimmed(line.substr(equal + 1)));
    if (name == "aws_access_key_id") keys.access_key = value;
    if (name == "aws_secret_access_key") keys.secret_key = value;
    if (name == "aws_session_token") keys.session_token = value;
  });
  if (keys.access_key.empty() != keys.secret_key.empty())
    return corrupt(fmt::format("{}: the profile {} has {}, and no {}", path, profile,
                               keys.access_key.empty() ? "aws_secret_access_key" : "aws_access_key_id",
                               keys.access_key.empty() ? "aws_access_key_id" : "aws_secret_access_key"));
  return keys;
}

Result<S3Keys> parse_container_keys(std::string_view text, const std::string& url) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto word = [&](const char* name) -> std::string {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : "";
  };
  if (!json.is_object() || word("AccessKeyId").empty() || word("SecretAccessKey").empty())
    return corrupt(fmt::format("{}: the answer has no AccessKeyId and SecretAccessKey", url));
  S3Keys keys{word("AccessKeyId"), word("SecretAccessKey"), word("Token")};
  std::tm time{};
  if (const std::string end = word("Expiration");
      strptime(end.c_str(), "%Y-%m-%dT%H:%M:%S", &time) != nullptr)
    keys.expires = static_cast<int64_t>(timegm(&time));
  return keys;
}

Result<S3Keys> Credentials::read() {
  if (!places_.given.access_key.empty()) return places_.given;
  if (!places_.file.empty()) {
    place_ = fmt::format("profile {} of {}", places_.profile, places_.file);
    const auto read = local_file_system().read_file(places_.file, kMostKeyBytes);
    if (!read.ok()) return read.error().with_context(fmt::format("the keys of profile {}", places_.profile));
    const std::string& text = *read;
    ASSIGN_OR_RETURN(S3Keys keys, parse_credentials_file(text, places_.file, places_.profile));
    if (!keys.access_key.empty()) return keys;
    // Requests without keys would be refused, and not say why.
    if (places_.named)
      return invalid_argument(fmt::format(
          "{}: no keys for s3:// in the profile {}; {} (AWS_SHARED_CREDENTIALS_FILE names the file, "
          "AWS_PROFILE the profile)",
          places_.file, places_.profile, profiles_text(text)));
  }
  if (places_.url.empty()) return S3Keys();
  place_ = places_.url;
  return ask_server();
}

Result<S3Keys> Credentials::ask_server() const {
  HttpRequest request;
  request.url = places_.url;
  request.max_body = kMostKeyBytes;
  std::string token = places_.token;
  if (!places_.token_file.empty()) {
    ASSIGN_OR_RETURN(token, local_file_system().read_file(places_.token_file, kMostKeyBytes));
  }
  if (!token.empty()) request.headers.push_back(fmt::format("Authorization: {}", trimmed(token)));
  const HttpResponse response = http_.perform(request);
  if (response.status != 200 || !response.failure.empty())
    return io_error(
        fmt::format("{}: no keys for s3://: {}", places_.url,
                    response.failure.empty() ? fmt::format("status {}", response.status) : response.failure));
  return parse_container_keys(response.body, places_.url);
}

Result<S3Keys> Credentials::keys() {
  const std::lock_guard lock(mutex_);
  const bool ends = keys_.expires != 0 && std::time(nullptr) > keys_.expires - kRenewBefore;
  if (read_ && !ends) return keys_;
  auto fresh = read();
  // Keys that are still good for minutes are used where no others can be had.
  if (!fresh.ok() && read_) return keys_;
  if (!fresh.ok()) return fresh;
  read_ = true;
  keys_ = std::move(*fresh);
  return keys_;
}

std::string Credentials::place() const {
  const std::lock_guard lock(mutex_);
  return place_;
}

Result<bool> Credentials::renew(const S3Keys& used) {
  const std::lock_guard lock(mutex_);
  if (read_ && !(keys_ == used)) return true;  // another thread has read them
  ASSIGN_OR_RETURN(keys_, read());
  read_ = true;
  return !(keys_ == used);
}

}  // namespace ostro::io
