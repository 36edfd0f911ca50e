#include "ostro/objects/web/credentials.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <ctime>
#include <iterator>

#include "ostro/base/log.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/web/http_text.h"
#include "ostro/objects/web/profile_file.h"

namespace ostro::objects {
namespace {

constexpr int64_t kRenewBefore = 300;     // seconds before the end at which keys are read again
constexpr int64_t kLookAgainMs = 30'000;  // between two attempts at that
constexpr int64_t kFailureCountsMs = 5'000;
constexpr int64_t kFileWrittenMs = 500;  // in which a file that is written anew is there
constexpr int kAttempts = 3;             // of servers that are asked for keys
constexpr const char* kEnvironment = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
constexpr const char* kOwnSession = "ostro";  // how STS records who took a role
constexpr const char* kInstancePlace = "http://169.254.169.254";
constexpr const char* kInstancePlace6 = "http://[fd00:ec2::254]";
constexpr const char* kDefaultRegion = "us-east-1";

std::string in_lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string file_of_user(const std::string& named, const std::string& home, const char* usual) {
  return !named.empty() || home.empty() ? named : io::join_path(home, usual);
}

std::string profile_of(const std::string& named) { return named.empty() ? "default" : named; }

// The text of a file; nothing when it is not there and need not be.
Result<std::optional<std::string>> read_keys_file(const std::string& path, bool must_be) {
  if (path.empty()) return std::optional<std::string>();
  if (!must_be) {
    ASSIGN_OR_RETURN(const bool there, io::local_file_system().exists(path));
    if (!there) return std::optional<std::string>();
  }
  ASSIGN_OR_RETURN(std::string text, io::local_file_system().read_file(path, kMostKeyBytes));
  return std::optional(std::move(text));
}

std::string address_of_sts(const std::function<std::string(const char*)>& get, const std::string& region) {
  std::string url = get("AWS_ENDPOINT_URL_STS");
  if (url.empty()) url = get("AWS_ENDPOINT_URL");
  if (url.empty())
    return fmt::format("https://sts.{}.amazonaws.com{}", region, region.starts_with("cn-") ? ".cn" : "");
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::string address_of_instance(const std::function<std::string(const char*)>& get) {
  if (in_lower_case(get("AWS_EC2_METADATA_DISABLED")) == "true") return "";
  std::string url = get("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  while (url.ends_with('/')) url.pop_back();
  if (!url.empty()) return url;
  return in_lower_case(get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")) == "ipv6" ? kInstancePlace6
                                                                                : kInstancePlace;
}

}  // namespace

Result<std::string> region_of(const std::function<std::string(const char*)>& get) {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (std::string region = get(name); !region.empty()) return region;
  const std::string path = file_of_user(get("AWS_CONFIG_FILE"), get("HOME"), ".aws/config");
  ASSIGN_OR_RETURN(const auto text, read_keys_file(path, /*must_be=*/false));
  if (!text) return std::string(kDefaultRegion);
  const ProfileValues values =
      profile_section(*text, ProfileFile::kConfiguration, profile_of(get("AWS_PROFILE")));
  const auto found = values.find("region");
  return found == values.end() || found->second.empty() ? std::string(kDefaultRegion) : found->second;
}

Result<CredentialPlaces> credential_places(const std::function<std::string(const char*)>& get,
                                           const std::string& region) {
  CredentialPlaces places;
  S3Keys& given = places.given;
  given = {get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY"), get("AWS_SESSION_TOKEN")};
  if (given.access_key.empty() != given.secret_key.empty())
    return invalid_argument(
        fmt::format("{} is set and {} is not; set both, or none for public buckets",
                    given.access_key.empty() ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                    given.access_key.empty() ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY"));
  if (!given.access_key.empty()) return places;
  const std::string session = get("AWS_ROLE_SESSION_NAME");
  places.identity = {get("AWS_ROLE_ARN"), get("AWS_WEB_IDENTITY_TOKEN_FILE"),
                     session.empty() ? kOwnSession : session};
  places.sts = address_of_sts(get, region);
  // Without a scheme the token would be sent in clear text.
  if (!places.sts.starts_with("http://") && !places.sts.starts_with("https://"))
    return invalid_argument(fmt::format(
        "{}: \"{}\" does not begin with http:// or https://",
        get("AWS_ENDPOINT_URL_STS").empty() ? "AWS_ENDPOINT_URL" : "AWS_ENDPOINT_URL_STS", places.sts));
  const std::string profile = get("AWS_PROFILE"), file = get("AWS_SHARED_CREDENTIALS_FILE");
  places.named = !profile.empty() || !file.empty();
  places.file_named = !file.empty();
  places.profile = profile_of(profile);
  places.file = file_of_user(file, get("HOME"), ".aws/credentials");
  places.config = file_of_user(get("AWS_CONFIG_FILE"), get("HOME"), ".aws/config");
  const std::string relative = get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  places.url =
      relative.empty() ? get("AWS_CONTAINER_CREDENTIALS_FULL_URI") : "http://169.254.170.2" + relative;
  places.token = get("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  places.token_file = get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  places.instance = address_of_instance(get);
  return places;
}

std::optional<S3Keys> Credentials::none(const std::string& what, const std::string& why) {
  found_.tried.push_back(fmt::format("{}: {}", what, why));
  return std::nullopt;
}

Credentials::Found Credentials::read_given(const KeyAsker&) {
  if (places_.given.access_key.empty()) return none("environment", "AWS_ACCESS_KEY_ID is not set");
  found_.place = kEnvironment;
  return std::optional(places_.given);
}

Credentials::Found Credentials::read_identity(const KeyAsker& by) {
  const WebIdentity& identity = places_.identity;
  if (identity.role.empty() || identity.token_file.empty())
    return none("web identity",
                identity.role.empty() && identity.token_file.empty()
                    ? "AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE are not set"
                    : fmt::format("{} is not set",
                                  identity.role.empty() ? "AWS_ROLE_ARN" : "AWS_WEB_IDENTITY_TOKEN_FILE"));
  found_.place = fmt::format("the role {} by the token in {}", identity.role, identity.token_file);
  ASSIGN_OR_RETURN(S3Keys keys, ask_sts(by, places_.sts, identity));
  return std::optional(std::move(keys));
}

Credentials::Found Credentials::read_profile(const KeyAsker& by) {
  const std::string& profile = places_.profile;
  ProfileValues merged;  // those of the credentials file count more
  std::vector<std::string> lack;
  std::string role_of;
  for (const ProfileFile kind : {ProfileFile::kCredentials, ProfileFile::kConfiguration}) {
    const bool config = kind == ProfileFile::kConfiguration;
    const std::string& path = config ? places_.config : places_.file;
    if (path.empty()) continue;
    const auto read = read_keys_file(path, !config && places_.file_named);
    if (!read.ok()) return read.error().with_context(fmt::format("the keys of profile {}", profile));
    if (!*read) {
      lack.push_back(fmt::format("{} is not there", path));
      continue;
    }
    ProfileValues values = profile_section(**read, kind, profile);
    ASSIGN_OR_RETURN(S3Keys keys, profile_keys(values, path, profile));
    if (!keys.access_key.empty()) {
      found_.place = fmt::format("profile {} of {}", profile, path);
      return std::optional(std::move(keys));
    }
    lack.push_back(fmt::format("{}: no keys for s3:// in the profile {}; {}", path, profile,
                               profiles_text(**read, kind)));
    if (!values.empty()) role_of = path;
    merged.merge(values);
  }
  const std::string place = fmt::format("profile {} of {}", profile, role_of);
  WebIdentity identity{merged["role_arn"], merged["web_identity_token_file"], merged["role_session_name"]};
  if (!identity.role.empty() && !identity.token_file.empty()) {
    if (identity.session.empty()) identity.session = kOwnSession;
    found_.place =
        fmt::format("the role {} by the token in {} ({})", identity.role, identity.token_file, place);
    ASSIGN_OR_RETURN(S3Keys keys, ask_sts(by, places_.sts, identity));
    return std::optional(std::move(keys));
  }
  if (!merged["credential_process"].empty()) {
    found_.place = "credential_process of " + place;
    ASSIGN_OR_RETURN(S3Keys keys, ask_program(merged["credential_process"], found_.place, by.stop));
    return std::optional(std::move(keys));
  }
  if (lack.empty()) return none("files", "HOME is not set, so there are none");
  bool unread = false;  // it has keys that others can read, and another source would be another user
  for (const char* other : {"role_arn", "sso_session", "sso_account_id", "sso_start_url"})
    if (!merged[other].empty()) {
      unread = true;
      lack.push_back(fmt::format(
          "its {} is not read here: let its credential_process run `aws configure export-credentials "
          "--profile {}`",
          other, profile));
      break;
    }
  const std::string why = fmt::format("{}", fmt::join(lack, "; "));
  // Requests without keys would be refused, and not say why.
  if (places_.named || unread)
    return invalid_argument(
        fmt::format("{} (AWS_SHARED_CREDENTIALS_FILE names the file, AWS_PROFILE the profile)", why));
  return none("files", why);
}

Credentials::Found Credentials::read_container(const KeyAsker& by) {
  if (places_.url.empty())
    return none("container",
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and AWS_CONTAINER_CREDENTIALS_FULL_URI are not set");
  found_.place = server_of_url(places_.url);
  RETURN_IF_ERROR(check_container_url(places_.url));
  std::string token = places_.token;
  if (!places_.token_file.empty()) {
    ASSIGN_OR_RETURN(token, io::local_file_system().read_file(places_.token_file, kMostKeyBytes));
  }
  ASSIGN_OR_RETURN(S3Keys keys, ask_container(by, places_.url, token));
  return std::optional(std::move(keys));
}

Credentials::Found Credentials::read_instance(const KeyAsker& by) {
  const std::string what = "instance metadata";
  if (places_.instance.empty()) return none(what, "AWS_EC2_METADATA_DISABLED is true");
  if (!no_instance_.empty()) return none(what, no_instance_);
  const bool known = source_.has_value();
  auto given = ask_instance(by, places_.instance, known);
  if (!given.ok() && given.error().code() == ErrorCode::kNotFound) {
    if (!known) no_instance_ = given.error().message();
    return none(what, given.error().message());
  }
  if (!given.ok()) return given.error();
  found_.place = fmt::format("the role {} of this machine ({})", given->role, places_.instance);
  return std::optional(std::move(given->keys));
}

const Credentials::Source Credentials::kSources[] = {&Credentials::read_given, &Credentials::read_identity,
                                                     &Credentials::read_profile, &Credentials::read_container,
                                                     &Credentials::read_instance};

Result<S3Keys> Credentials::read(int attempts) {
  found_ = {};
  const KeyAsker by{http_, clock_, attempts, stop_.get_token()};
  int tries = 1;
  for (size_t i = source_.value_or(0); i < std::size(kSources); ++i) {
    ASSIGN_OR_RETURN(std::optional<S3Keys> keys, (this->*kSources[i])(by));
    // A file may just be written anew.
    while (source_ && (!keys || found_.place != source_place_) && tries++ < attempts) {
      clock_.sleep_ms(kFileWrittenMs, by.stop);
      found_ = {};
      ASSIGN_OR_RETURN(keys, (this->*kSources[i])(by));
    }
    // Other keys could be those of another user, who may do other things.
    if (source_ && !keys)
      return io_error(fmt::format("{} gave keys for s3:// before, and gives none now: {}", source_place_,
                                  found_.tried.back()));
    if (source_ && found_.place != source_place_)
      return io_error(
          fmt::format("{} gave keys for s3:// before, and now there are some of {}; start the "
                      "process again to use those",
                      source_place_, found_.place));
    if (!keys) continue;
    for (const std::string* text : {&keys->access_key, &keys->secret_key, &keys->session_token})
      if (!is_one_line(*text))
        return corrupt(
            fmt::format("{}: the keys for s3:// have line ends or other control characters", found_.place));
    source_ = i, source_place_ = found_.place;
    return std::move(*keys);
  }
  found_.place.clear();
  return S3Keys();
}

Result<S3Keys> Credentials::read_all(int attempts) {
  auto fresh = read(attempts);
  const std::lock_guard lock(mutex_);
  const int64_t now = clock_.now_ms();
  failure_.reset();
  // Those of before stay in use, so what is known of them stays, too.
  if (fresh.ok() || !read_) known_ = found_;
  if (fresh.ok()) {
    read_ = true, keys_ = *fresh, look_again_ = now + kLookAgainMs;
    return fresh;
  }
  // Callers take kNotFound, kCorrupt and others for what is the matter with an object.
  Error error =
      fresh.error().code() == ErrorCode::kInvalidArgument ? fresh.error() : io_error(fresh.error().message());
  if (attempts > 1) failure_ = error, failure_until_ = now + kFailureCountsMs;
  return error;
}

bool Credentials::end_soon() const {
  return keys_.expires != 0 && keys_.expires - std::time(nullptr) < kRenewBefore;
}

std::optional<S3Keys> Credentials::usable() {
  if (!read_) return std::nullopt;
  if (!end_soon() || clock_.now_ms() < look_again_) return keys_;
  if (keys_.expires <= std::time(nullptr)) return std::nullopt;
  renew_early();
  return keys_;
}

// The thread that asks may be the one that keeps a lock, which cannot wait for a command or a server.
void Credentials::renew_early() {
  look_again_ = clock_.now_ms() + kLookAgainMs;
  if (renewing_) return;
  renewing_ = true;
  // The one before has ended but for its last instructions, which need no lock.
  renewer_ = std::jthread([this, used = keys_] {
    std::unique_lock reads(reading_);
    const bool done = [&] {
      const std::lock_guard lock(mutex_);
      return !(keys_ == used);
    }();
    if (!done && !stop_.stop_requested())
      if (const auto fresh = read_all(1); !fresh.ok())
        log_warning(fmt::format("new keys for s3:// are tried for again in {} s: {}", kLookAgainMs / 1000,
                                fresh.error().message()));
    reads.unlock();
    const std::lock_guard lock(mutex_);
    renewing_ = false;
    settled_.notify_all();
  });
}

void Credentials::settle() {
  std::unique_lock lock(mutex_);
  settled_.wait(lock, [this] { return !renewing_; });
}

Result<S3Keys> Credentials::keys() {
  {
    const std::lock_guard lock(mutex_);
    if (auto keys = usable()) return *keys;
  }
  const std::lock_guard reads(reading_);
  {
    const std::lock_guard lock(mutex_);  // another thread may have read them meanwhile
    if (auto keys = usable()) return *keys;
    const int64_t now = clock_.now_ms();
    if (failure_ && now < failure_until_) return *failure_;
    look_again_ = now + kLookAgainMs;
  }
  auto fresh = read_all(kAttempts);
  const std::lock_guard lock(mutex_);
  if (fresh.ok() || !read_ || stop_.stop_requested()) return fresh;
  // This machine's clock may be wrong: the server decides whether they have ended.
  log_warning(
      fmt::format("the keys for s3:// have expired, and there are no new ones: {}", fresh.error().message()));
  return keys_;
}

std::string Credentials::place() const {
  const std::lock_guard lock(mutex_);
  return known_.place;
}

std::string Credentials::tried() const {
  const std::lock_guard lock(mutex_);
  return fmt::format("{}", fmt::join(known_.tried, "; "));
}

Result<bool> Credentials::renew(const S3Keys& used, Refused why) {
  // What needs no reading; with mutex_ held.
  const auto decided = [&]() -> std::optional<bool> {
    if (read_ && !(keys_ == used)) return true;  // another thread has read them
    const bool may_have_ended = keys_.expires == 0 || end_soon();
    if (why == Refused::kNotSaid && (!may_have_ended || clock_.now_ms() < look_again_)) return false;
    return std::nullopt;
  };
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = decided()) return *known;
  }
  const std::lock_guard reads(reading_);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = decided()) return *known;
    const int64_t now = clock_.now_ms();
    if (failure_ && now < failure_until_) return *failure_;
    look_again_ = now + kLookAgainMs;
  }
  ASSIGN_OR_RETURN(const S3Keys fresh, read_all(kAttempts));
  return !(fresh == used);
}

}  // namespace ostro::objects
