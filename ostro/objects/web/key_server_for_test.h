// KeyServer, KeyFile: a server that gives keys as functions, and a file with keys, for tests.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/objects/web/credentials.h"
#include "ostro/objects/web/http.h"

namespace ostro::objects {

// Answers by the address; what is not there does not answer at all.
struct KeyServer final : HttpClient {
  std::map<std::string, std::function<HttpResponse(const HttpRequest&)>> at;
  std::vector<std::string> asked, bodies;
  HttpResponse perform(const HttpRequest& request) override {
    asked.push_back(request.method + " " + request.url);
    bodies.emplace_back(reinterpret_cast<const char*>(request.body.data()), request.body.size());
    const auto found = at.find(asked.back());
    if (found == at.end()) return {.status = 0, .failure = "Connection refused"};
    return found->second(request);
  }
};

inline HttpResponse says(std::string body, int status = 200) {
  HttpResponse r{.status = status};
  r.body = std::move(body);
  return r;
}

inline std::string date_in(int64_t seconds) {
  const time_t when = std::time(nullptr) + seconds;
  std::tm time{};
  gmtime_r(&when, &time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", time.tm_year + 1900, time.tm_mon + 1,
                     time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
}

inline std::string sts_answer(int number, int64_t lives) {
  return fmt::format(
      "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
      "<AssumeRoleWithWebIdentityResult><Credentials><SessionToken>t{0}</SessionToken>"
      "<SecretAccessKey>s{0}</SecretAccessKey><Expiration>{1}</Expiration><AccessKeyId>k{0}</AccessKeyId>"
      "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
      number, date_in(lives));
}

struct KeyFile {
  explicit KeyFile(const std::string& name, const std::string& text)
      : path(fmt::format("/tmp/ostro_keys_{}_{}", ::getpid(), name)) {
    write(text);
  }
  ~KeyFile() { (void)io::local_file_system().remove(path); }
  void write(const std::string& text) const { check_ok(io::local_file_system().write_file(path, text)); }
  const std::string path;
};

using Variables = std::map<std::string, std::string>;

inline CredentialPlaces places_of(const Variables& variables) {
  return credential_places([&](const char* name) {
           const auto found = variables.find(name);
           return found == variables.end() ? "" : found->second;
         })
      .value();
}

// What keys() gives, and then what it gives when the renewal that it began is done.
inline std::pair<std::string, std::string> key_twice(Credentials& credentials) {
  const std::string first = credentials.keys().value().access_key;
  credentials.settle();
  return {first, credentials.keys().value().access_key};
}

}  // namespace ostro::objects
