// Servers that give keys: STS, a container's and a machine's; what they refuse, and what they are told.
#include "ostro/objects/web/key_servers.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "ostro/objects/s3/fake_s3_for_test.h"
#include "ostro/objects/web/credentials.h"
#include "ostro/objects/web/http_text.h"
#include "ostro/objects/web/key_server_for_test.h"

using namespace ostro;
using namespace ostro::io;
using namespace ostro::objects;

namespace {

const std::string kMeta = "http://meta/latest/meta-data/iam/security-credentials/";

}  // namespace

TEST_CASE("credentials: the end of keys is read with its offset, and a text that is none is an error") {
  const int64_t noon = 1'767'268'800;  // 2026-01-01T12:00:00Z
  for (const char* text : {"2026-01-01T12:00:00Z", "2026-01-01T12:00:00.123456Z", "2026-01-01T14:00:00+02:00",
                           "2026-01-01T07:30:00.5-04:30", "2026-01-01T12:00:00+00:00"})
    CHECK_MESSAGE(parse_zoned_date(text) == noon, text);
  for (const char* text :
       {"", "2026-01-01T12:00:00", "2026-01-01", "2026-01-01T12:00:00+2", "tomorrow",
        "2026-01-01T12:00:00+25:00", "2026-01-01T12:00:00Z and more", "2026-13-01T12:00:00Z"})
    CHECK_MESSAGE(!parse_zoned_date(text), text);
  const auto parsed = [](const std::string& end) {
    return parse_container_keys(fmt::format(R"({{"AccessKeyId":"a","SecretAccessKey":"b"{}}})", end), "u");
  };
  CHECK(parsed("")->expires == 0);
  CHECK(parsed(R"(,"Expiration":null)")->expires == 0);
  CHECK(parsed(R"(,"Expiration":"2026-01-01T14:00:00+02:00")")->expires == noon);
  for (const char* bad : {R"(,"Expiration":"soon")", R"(,"Expiration":1767268800)"}) {
    const auto keys = parsed(bad);
    REQUIRE_FALSE(keys.ok());
    CHECK(keys.error().code() == ErrorCode::kCorrupt);
  }
}

TEST_CASE("credentials: a container's token goes to this machine, to Amazon's servers of keys, or by https") {
  for (const char* good : {"https://keys.example/x", "http://localhost/x", "http://127.0.0.1:80/x",
                           "http://127.9.9.9", "http://[::1]:80/x", "http://169.254.170.2/v2",
                           "http://169.254.170.23/v1", "http://[fd00:ec2::23]/v1"})
    CHECK_MESSAGE(check_container_url(good).ok(), good);
  for (const char* bad :
       {"http://keys.example/x", "http://127.0.0.1.example/", "http://127.0.0.1:80@example/",
        "http://example@127.0.0.1/", "http://169.254.170.2.example/", "127.0.0.1/x", "ftp://127.0.0.1/",
        "http://10.0.0.1/", "http://[::2]/"})
    CHECK_MESSAGE(!check_container_url(bad).ok(), bad);
  const auto url = [](Variables more) { return places_of(more).url; };
  const Variables both = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost/full"},
                          {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/id"}};
  CHECK(url(both) == "http://169.254.170.2/v2/id");
  CHECK(url({*both.begin()}) == "http://localhost/full");
  KeyServer server;
  Credentials far(places_of({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://keys.example/secret-path"},
                             {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "t"}}),
                  server);
  const std::string said = far.keys().error().message();
  CHECK(said.starts_with("AWS_CONTAINER_CREDENTIALS_FULL_URI: http://keys.example: use https://"));
  CHECK(said.find("secret-path") == std::string::npos);
  CHECK(server.asked.empty());
  const auto sts = credential_places(
      [](const char* name) { return name == std::string("AWS_ENDPOINT_URL_STS") ? "sts.example" : ""; });
  CHECK(sts.error().message() ==
        "AWS_ENDPOINT_URL_STS: \"sts.example\" does not begin with http:// or https://");
  // A token or keys with line ends would be header fields of their own.
  FakeClock clock;
  server.at["GET http://localhost/"] = [](const HttpRequest&) {
    return says("{\"AccessKeyId\":\"k\",\"SecretAccessKey\":\"s\",\"Token\":\"t\\r\\nX: 1\"}");
  };
  CredentialPlaces places{.url = "http://localhost/"};
  CHECK(Credentials(places, server, clock).keys().error().message().find("control characters") !=
        std::string::npos);
  places.token = "a\r\nX: 1";
  CHECK(Credentials(places, server, clock).keys().error().message().find("the token for it has line ends") !=
        std::string::npos);
  CHECK(server.asked.size() == 1);
  // What a server says is cut, and shown as text.
  const std::string long_text =
      parse_container_keys("{\"Code\":\"No\",\"Message\":\"a\\n" + std::string(5000, 'x') + "\"}", "u")
          .error()
          .message();
  CHECK(long_text.starts_with("u: no keys for s3://: No a?xxx"));
  CHECK(long_text.size() < 400);
}

TEST_CASE("credentials: what STS refuses is an error with its words, and no other place is tried") {
  const KeyFile token("refused", "t");
  KeyServer server;
  FakeClock clock;
  server.at["POST http://sts/"] = [](const HttpRequest&) {
    return says(
        "<ErrorResponse><Error><Code>ExpiredToken</Code><Message>Old.</Message></Error></ErrorResponse>",
        400);
  };
  Variables variables = {{"AWS_ROLE_ARN", "r"},
                         {"AWS_WEB_IDENTITY_TOKEN_FILE", token.path},
                         {"AWS_ENDPOINT_URL_STS", "http://sts"},
                         {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://container/"}};
  CHECK(Credentials(places_of(variables), server, clock).keys().error().message() ==
        "http://sts: no keys for s3:// of the role r, by the token in " + token.path +
            ": status 400 (ExpiredToken: Old.)");
  CHECK(server.asked == std::vector<std::string>{"POST http://sts/"});
  variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = token.path + ".none";
  const auto no_token = Credentials(places_of(variables), server, clock).keys();
  CHECK(no_token.error().message().starts_with("the token for the role r: "));
  CHECK(no_token.error().code() == ErrorCode::kIo);  // it is no object that is not there
  CHECK_FALSE(parse_sts_keys("<AssumeRoleWithWebIdentityResponse/>", "u").ok());
  CHECK_FALSE(parse_sts_keys("no XML", "u").ok());
  // Keys of the environment come first, and then nothing is asked.
  server.asked.clear();
  variables["AWS_ACCESS_KEY_ID"] = "a", variables["AWS_SECRET_ACCESS_KEY"] = "b";
  CHECK(Credentials(places_of(variables), server, clock).keys().value() == S3Keys{"a", "b", ""});
  CHECK(server.asked.empty());
  const auto sts = [&](Variables more) { return places_of(more).sts; };
  CHECK(sts({}) == "https://sts.us-east-1.amazonaws.com");
  CHECK(sts({{"AWS_ENDPOINT_URL", "http://all/"}}) == "http://all");
  CHECK(credential_places([](const char*) { return ""; }, "cn-north-1")->sts ==
        "https://sts.cn-north-1.amazonaws.com.cn");
}

TEST_CASE("credentials: the role of a machine, by a token; nothing there is asked once") {
  KeyServer server;
  FakeClock clock;
  const Variables variables = {{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://meta/"}};
  int given = 0;
  server.at["PUT http://meta/latest/api/token"] = [](const HttpRequest& request) {
    CHECK(request.headers == std::vector<std::string>{"X-aws-ec2-metadata-token-ttl-seconds: 300"});
    CHECK(request.direct);
    CHECK(request.total_ms > 0);
    return says("the-token");
  };
  const auto checked = [](const HttpRequest& request) {
    CHECK(request.headers == std::vector<std::string>{"X-aws-ec2-metadata-token: the-token"});
  };
  server.at["GET " + kMeta] = [&](const HttpRequest& request) {
    checked(request);
    return says("worker\n");
  };
  server.at["GET " + kMeta + "worker"] = [&](const HttpRequest& request) {
    checked(request);
    return says(fmt::format(
        R"({{"Code":"Success","AccessKeyId":"k{0}","SecretAccessKey":"s","Token":"t","Expiration":"{1}"}})",
        ++given, date_in(200)));
  };
  Credentials credentials(places_of(variables), server, clock);
  CHECK(credentials.keys().value().access_key == "k1");
  CHECK(credentials.place() == "the role worker of this machine (http://meta)");
  clock.now += 31'000;
  CHECK(key_twice(credentials) == std::pair<std::string, std::string>("k1", "k2"));
  // Who has had keys of a role does not go on without any.
  const S3Keys last = credentials.keys().value();
  server.at["GET " + kMeta] = [](const HttpRequest&) { return says("", 404); };
  CHECK_FALSE(credentials.renew(last).ok());
  CHECK(credentials.keys().value() == last);
  CHECK(credentials.place() == "the role worker of this machine (http://meta)");
  server.at["GET " + kMeta] = [](const HttpRequest&) { return says("", 500); };
  CHECK(Credentials(places_of(variables), server, clock).keys().error().message() ==
        kMeta + ": no role: status 500");
  server.at["GET " + kMeta] = [](const HttpRequest&) { return says("", 404); };
  // No role; no token; no answer.
  CHECK(Credentials(places_of(variables), server, clock).keys().value() == S3Keys());
  for (const bool answers : {true, false}) {
    server.at.clear();
    if (answers)
      server.at["PUT http://meta/latest/api/token"] = [](const HttpRequest&) { return says("", 403); };
    server.asked.clear();
    Credentials none(places_of(variables), server, clock);
    CHECK(none.keys().value() == S3Keys());
    CHECK_FALSE(none.renew({}).value());
    CHECK(server.asked.size() == 1);
    CHECK(none.place().empty());
    CHECK(none.tried() ==
          std::string("environment: AWS_ACCESS_KEY_ID is not set; web identity: AWS_ROLE_ARN and "
                      "AWS_WEB_IDENTITY_TOKEN_FILE are not set; files: HOME is not set, so there are none; "
                      "container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and "
                      "AWS_CONTAINER_CREDENTIALS_FULL_URI are not set; instance metadata: ") +
              (answers ? "http://meta gives no token (IMDSv2): status 403"
                       : "nothing answers at http://meta (Connection refused)"));
  }
  server.asked.clear();
  Variables off = variables;
  off["AWS_EC2_METADATA_DISABLED"] = "True";
  CHECK(Credentials(places_of(off), server, clock).keys().value() == S3Keys());
  CHECK(server.asked.empty());
}
