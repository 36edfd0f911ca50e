// Credentials: the keys that requests to an S3 server are signed with, read again before they expire.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/objects/web/http.h"
#include "ostro/objects/web/key_servers.h"
#include "ostro/objects/web/retry.h"

namespace ostro::objects {

// Where keys come from. The first place that has some is used, as Amazon's tools do, and from then on that
// one alone; the others are looked at only then. Where none has any, requests are anonymous.
struct CredentialPlaces {
  S3Keys given;                       // 1. from the environment; they never change
  WebIdentity identity;               // 2. a token in a file, for which STS gives the keys of a role
  std::string sts;                    //    where STS is
  std::string file, config, profile;  // 3. INI files with a section for each profile
  bool named = false;                 //    the user named the profile or `file`: one must have keys
  bool file_named = false;            //    and that one must be there
  std::string url;                    // 4. a server of the container that gives out keys
  std::string token, token_file;      //    what it wants as Authorization: a text, or a file with it
  std::string instance;               // 5. where the machine's metadata are; "": it is not asked for them
};

// Reads through `get` the variables of docs/reference/sources.md that say where keys are. `region`: of this
// process, whose STS is asked. Errors name the variable.
Result<CredentialPlaces> credential_places(const std::function<std::string(const char*)>& get,
                                           const std::string& region = "us-east-1");

// AWS_REGION, AWS_DEFAULT_REGION or the region of the profile in the configuration file; else us-east-1.
// Errors: a configuration file that cannot be read.
Result<std::string> region_of(const std::function<std::string(const char*)>& get);

// Thread-safe. `http` and `clock` must outlive it. A thread of its own reads keys again in the last minutes
// before they expire, while callers go on with those that are there.
class Credentials {
 public:
  Credentials(CredentialPlaces places, HttpClient& http, RetryClock& clock = system_retry_clock())
      : places_(std::move(places)), http_(http), clock_(clock) {}
  ~Credentials() { stop(); }

  // The keys. Waits for them when they are first needed, and when those that are there have expired. Errors:
  // those of reading, none of which is kNotFound or kCorrupt, since they say nothing about an object. A place
  // that is named and gives none is an error, and so is one that gave keys before; the machine's metadata are
  // looked for once, for a second.
  Result<S3Keys> keys();
  // Why a server refused keys: they have expired, or they may not do this and it does not say which.
  enum class Refused { kExpired, kNotSaid };
  // A server refused `used`. Returns true when there are other keys now. With kNotSaid only keys that may
  // have expired are read again, and twice a minute at most. Errors: those of reading.
  Result<bool> renew(const S3Keys& used, Refused why = Refused::kExpired);
  // Ends what is under way, and all that would be read later, with an error; for the end of the process.
  void stop() { stop_.request_stop(); }
  // Waits until no early renewal is under way; for tests.
  void settle();
  // For errors: the place of the keys that keys() gives; "" when there are none.
  std::string place() const;
  // Each place that was tried for them, and why it gave none.
  std::string tried() const;

 private:
  using Found = Result<std::optional<S3Keys>>;
  using Source = Found (Credentials::*)(const KeyAsker&);
  Result<S3Keys> read(int attempts);
  Found read_given(const KeyAsker& by);
  Found read_identity(const KeyAsker& by);
  Found read_profile(const KeyAsker& by);
  Found read_container(const KeyAsker& by);
  Found read_instance(const KeyAsker& by);
  // No keys, and why.
  std::optional<S3Keys> none(const std::string& what, const std::string& why);
  // Reads, and publishes what came; with reading_ held.
  Result<S3Keys> read_all(int attempts);
  // The following ones with mutex_ held. The keys that need no waiting; those that end soon are then renewed.
  std::optional<S3Keys> usable();
  bool end_soon() const;
  void renew_early();

  // Where keys were looked for.
  struct Looked {
    std::string place;
    std::vector<std::string> tried;
  };

  static const Source kSources[];

  const CredentialPlaces places_;
  HttpClient& http_;
  RetryClock& clock_;
  std::stop_source stop_;
  // Held while places are asked, by one thread; it guards found_, what gave keys, and no_instance_.
  std::mutex reading_;
  Looked found_;
  std::optional<size_t> source_;  // of kSources: what gave keys, which alone is asked again
  std::string source_place_;
  std::string no_instance_;   // why the machine's metadata are not asked for again
  mutable std::mutex mutex_;  // of what follows
  bool read_ = false;
  int64_t look_again_ = 0;  // by clock_, ms: not before
  S3Keys keys_;
  Looked known_{"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", {}};
  std::optional<Error> failure_;  // of the last reading, when it was tried as often as it may be
  int64_t failure_until_ = 0;     // by clock_, ms: it counts for the threads that waited, too
  bool renewing_ = false;
  std::condition_variable settled_;
  std::jthread renewer_;  // last, so that it ends before what it uses
};

}  // namespace ostro::objects
