// Profiles of AWS's two files: with keys, a role, a command or a region, and what is said of those that have
// none.
#include "ostro/objects/web/profile_file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <stop_token>
#include <string>
#include <utility>

#include "ostro/objects/s3/fake_s3_for_test.h"
#include "ostro/objects/web/credentials.h"
#include "ostro/objects/web/key_server_for_test.h"
#include "ostro/objects/web/key_servers.h"

using namespace ostro;
using namespace ostro::io;
using namespace ostro::objects;

TEST_CASE("credentials: profiles of both files, with keys, a role or a command") {
  const KeyFile token("profile_token", "t");
  const KeyFile file("credentials", "[keys]\naws_access_key_id=a\naws_secret_access_key=b\n");
  const KeyFile config("config",
                       fmt::format("[default]\nregion = eu-west-3\ns3 =\n  region = nested\n"
                                   "[profile keys]\naws_access_key_id=c\naws_secret_access_key=d\n"
                                   "[profile own]\naws_access_key_id=e\naws_secret_access_key=f\n"
                                   "[profile role]\nrole_arn = r\nweb_identity_token_file = {}\n"
                                   "[profile \"with words\"]\ncredential_process = printf "
                                   "'{{\"Version\":1,\"AccessKeyId\":\"p\",\"SecretAccessKey\":\"q\"}}'\n"
                                   "[profile fails]\ncredential_process = echo secret; exit 3\n"
                                   "[profile other]\nsso_session = s\n[sso-session s]\nregion = x\n",
                                   token.path));
  KeyServer server;
  FakeClock clock;
  server.at["POST http://sts/"] = [](const HttpRequest&) { return says(sts_answer(7, 3600)); };
  const auto variables = [&](const std::string& profile) {
    return Variables{{"AWS_SHARED_CREDENTIALS_FILE", file.path},
                     {"AWS_CONFIG_FILE", config.path},
                     {"AWS_PROFILE", profile},
                     {"AWS_ENDPOINT_URL_STS", "http://sts"}};
  };
  const auto told = [&](const std::string& profile) -> std::string {
    Credentials credentials(places_of(variables(profile)), server, clock);
    const auto keys = credentials.keys();
    return keys.ok() ? keys->access_key + " of " + credentials.place() : keys.error().message();
  };
  CHECK(told("keys") == "a of profile keys of " + file.path);
  CHECK(told("own") == "e of profile own of " + config.path);
  CHECK(told("role") ==
        fmt::format("k7 of the role r by the token in {} (profile role of {})", token.path, config.path));
  CHECK(told("with words") == "p of credential_process of profile with words of " + config.path);
  CHECK(told("fails") ==
        fmt::format("credential_process of profile fails of {}: no keys for s3://: the command "
                    "ended with status 3; run it to see why",
                    config.path));
  const std::string missing = told("other");
  for (const std::string& words :
       {file.path + ": no keys for s3:// in the profile other; it has the profiles keys",
        config.path +
            ": no keys for s3:// in the profile other; it has the profiles default, keys, own, role, with",
        std::string("its sso_session is not read here: let its credential_process run `aws configure "
                    "export-credentials --profile other`")})
    CHECK_MESSAGE(missing.find(words) != std::string::npos, missing);
  // The default profile was not named, and yet no other keys are taken for those of its SSO or role.
  for (const char* of_others :
       {"sso_session = s", "sso_start_url = u", "role_arn = r\nsource_profile = keys", "region = x"}) {
    const KeyFile usual("usual", fmt::format("[default]\n{}\n", of_others));
    const bool passed = of_others == std::string("region = x");  // the control
    CHECK(Credentials({.config = usual.path, .profile = "default"}, server, clock).keys().ok() == passed);
  }
  const auto region = [&](Variables given) {
    return region_of([&](const char* name) { return given[name]; }).value();
  };
  CHECK(region({{"AWS_CONFIG_FILE", config.path}}) == "eu-west-3");
  CHECK(region({{"AWS_CONFIG_FILE", config.path}, {"AWS_DEFAULT_REGION", "here"}}) == "here");
  CHECK(region({{"AWS_CONFIG_FILE", config.path}, {"AWS_PROFILE", "other"}}) == "us-east-1");
  CHECK(region({{"AWS_CONFIG_FILE", config.path + ".none"}}) == "us-east-1");
  CHECK_FALSE(
      ask_program("echo '{\"AccessKeyId\":\"p\",\"SecretAccessKey\":\"q\"}'", "f").ok());  // no version
  CHECK(ask_program("kill -9 $$", "f").error().message() ==
        "f: no keys for s3://: the command was killed by a signal; run it to see why");
  std::stop_source ends;
  ends.request_stop();
  CHECK(ask_program("sleep 1000", "f", ends.get_token()).error().message() ==
        "f: no keys for s3://: the command was ended, since this process ends");
}
