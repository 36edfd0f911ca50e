// Credentials: the keys that requests to an S3 server are signed with, read again when they have expired.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "ostro/base/error.h"
#include "ostro/io/s3/http.h"

namespace ostro::io {

struct S3Keys {
  std::string access_key, secret_key, session_token;  // no access key: requests are anonymous
  int64_t expires = 0;                                // seconds since 1970; 0: not known
  bool operator==(const S3Keys&) const = default;
};

// Where keys come from. The first place that has some is used, as Amazon's tools do; the others are looked at
// only then. Where none has any, requests are anonymous.
struct CredentialPlaces {
  S3Keys given;                   // 1. from the environment; they never change
  std::string file, profile;      // 2. an INI file with a section for each profile
  bool named = false;             //    the user named the file or the profile: it must have keys
  std::string url;                // 3. a server of the container that gives out keys
  std::string token, token_file;  //    what it wants as Authorization: a text, or a file with it
};

// Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_SHARED_CREDENTIALS_FILE (or
// HOME/.aws/credentials), AWS_PROFILE, AWS_CONTAINER_CREDENTIALS_FULL_URI (or _RELATIVE_URI),
// AWS_CONTAINER_AUTHORIZATION_TOKEN and its _FILE through `get`. Errors name the variable.
Result<CredentialPlaces> credential_places(const std::function<std::string(const char*)>& get);

// Parses the section `profile` of an INI file; no keys where there is no such section, or it has none.
// kCorrupt: only one of the two keys is there.
Result<S3Keys> parse_credentials_file(std::string_view text, const std::string& path,
                                      const std::string& profile);
// Parses the answer of a container's server. kCorrupt for anything else.
Result<S3Keys> parse_container_keys(std::string_view json, const std::string& url);

// Thread-safe. `http` must outlive it.
class Credentials {
 public:
  Credentials(CredentialPlaces places, HttpClient& http) : places_(std::move(places)), http_(http) {}

  // The keys; read when they are first needed, and again in the last minutes before they expire. Errors:
  // those of reading.
  Result<S3Keys> keys();
  // A server said that `used` have expired. Returns true when there are other keys now.
  Result<bool> renew(const S3Keys& used);
  // For errors: the place of the keys that were read last.
  std::string place() const;

 private:
  Result<S3Keys> read();
  Result<S3Keys> ask_server() const;

  const CredentialPlaces places_;
  HttpClient& http_;
  mutable std::mutex mutex_;
  bool read_ = false;
  S3Keys keys_;
  std::string place_ = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
};

}  // namespace ostro::io
