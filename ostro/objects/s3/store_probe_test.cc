#include "ostro/objects/s3/store_probe.h"

#include <doctest/doctest.h>

#include "ostro/objects/s3/fake_s3_for_test.h"

using namespace ostro;
using namespace ostro::objects;

TEST_CASE("s3: a probe of a store writes, is refused, reads, and leaves nothing") {
  const auto probe = [](FakeS3& http, const std::string& marker) {
    FakeClock clock;
    S3Options options{.endpoint = "http://s3", .retry = {.attempts = 3}};
    options.credentials.given = {"id", "secret", ""};
    S3Client client(options, http, clock);
    return probe_store(client, {"b", "runs"}, "probe", marker);
  };
  FakeS3 http;
  http.objects["b/runs/marker"] = "m";
  http.objects["b/runs/one/chain.jsonl"] = "c";
  const auto there = http.objects;
  const auto good = probe(http, "marker");
  REQUIRE(good.ok());
  CHECK(good->server == "http://s3");
  CHECK(good->keys == "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  CHECK(good->seen);
  CHECK_FALSE(probe(http, "other")->seen);
  CHECK(http.objects == there);
  // Servers that take any write, which a probe that only writes and reads would not see.
  for (const char* condition : {"If-None-Match", "If-Match"}) {
    http.ignored = condition;
    const auto refused = probe(http, "marker");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message().starts_with(
        fmt::format("s3://b/runs/probe: the server http://s3 ignores {}, so two processes", condition)));
    CHECK(http.objects == there);
  }
  http.ignored = "x-amz-meta-ostro-write";
  CHECK(probe(http, "").error().message().find("keeps no metadata") != std::string::npos);
  http.ignored.clear();
  const auto fails = [&](const char* method, int status, const char* code) {
    http.before = [&, method](const std::string& line) {
      if (line.starts_with(method) && line.find("probe") != std::string::npos && http.faults.empty())
        http.faults.push_back([=](HttpResponse& r) {
          r = {.status = status};
          r.body = fmt::format("<Error><Code>{}</Code><Message>No.</Message></Error>", code);
        });
    };
    const auto failed = probe(http, "marker");
    http.before = {};
    http.faults.clear();
    http.objects.erase("b/runs/probe");  // a fault comes after the request was carried out
    return failed.ok() ? "" : failed.error().message();
  };
  CHECK(fails("PUT", 404, "NoSuchBucket") ==
        "s3://b/runs/probe: writing 23 bytes: status 404 (NoSuchBucket: No.); is there a bucket b at "
        "http://s3? "
        "Make it (aws s3 mb s3://b), or name another one");
  const std::string denied = fails("PUT", 403, "AccessDenied");
  CHECK_MESSAGE(denied.find("may not write it; the keys need s3:ListBucket of b, and s3:GetObject") !=
                    std::string::npos,
                denied);
  CHECK(fails("DELETE", 403, "AccessDenied").find("removing: status 403") != std::string::npos);
  CHECK(fails("GET", 503, "SlowDown").find("does this machine reach http://s3") != std::string::npos);
  CHECK(http.objects == there);
}
