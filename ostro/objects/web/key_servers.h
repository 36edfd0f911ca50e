// ask_container, ask_sts, ask_instance, ask_program: who gives out keys that expire, and how each is asked.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/objects/web/http.h"
#include "ostro/objects/web/retry.h"

namespace ostro::objects {

inline constexpr int64_t kMostKeyBytes = 1 << 20;  // of an answer, or of a file with keys

struct S3Keys {
  std::string access_key, secret_key, session_token;  // no access key: requests are anonymous
  int64_t expires = 0;                                // seconds since 1970; 0: not known
  bool operator==(const S3Keys&) const = default;
};

// A role, and the file with the token that stands for who may take it. The file is read at each request,
// since who made it replaces it.
struct WebIdentity {
  std::string role, token_file, session;
};

// Parses the JSON of a container's server, of the machine's metadata or of a credential_process. `url` names
// it in errors. kCorrupt for anything else, also for an Expiration
// that cannot be read; kIo where it says what failed.
Result<S3Keys> parse_container_keys(std::string_view json, const std::string& url);
// Parses the XML of AssumeRoleWithWebIdentity.
Result<S3Keys> parse_sts_keys(std::string_view xml, const std::string& url);

// How servers are asked: an attempt takes five seconds at most, and ends with an error when `stop` says so.
struct KeyAsker {
  HttpClient& http;
  RetryClock& clock;  // of the pauses between attempts
  int attempts = 3;
  std::stop_token stop = {};
};

// Whether the token of a container may be sent there. Error: kInvalidArgument for http to another host than
// this one or Amazon's servers of keys, where all machines in between see it; it has no path.
Status check_container_url(const std::string& url);

// The keys of a server of the container, of which errors have no path. `token`: what it wants as
// Authorization; "": nothing. Errors: kIo, no answer in all attempts, or a refusal; those of parsing.
Result<S3Keys> ask_container(const KeyAsker& by, const std::string& url, std::string_view token);
// The keys of a role, from STS at `url`. Errors: as above, with what STS says; a token file that cannot be
// read.
Result<S3Keys> ask_sts(const KeyAsker& by, const std::string& url, const WebIdentity& identity);

struct InstanceKeys {
  std::string role;
  S3Keys keys;
};
// The keys of the machine's role, from its metadata at `url` (IMDSv2: a token is fetched first). `known`: it
// has answered before, and is asked as others are; else once, for a second. Errors:
// kNotFound, nothing answers there or the machine has no role; kIo and kCorrupt, it has one and gives no
// keys.
Result<InstanceKeys> ask_instance(const KeyAsker& by, const std::string& url, bool known);

// The keys that a command writes as JSON of version 1; `sh` runs it, for a minute at most. Errors: it fails,
// takes longer, is stopped, or writes anything else; none has what it wrote, which may be a key.
Result<S3Keys> ask_program(const std::string& command, const std::string& of,
                           const std::stop_token& stop = {});

}  // namespace ostro::objects
