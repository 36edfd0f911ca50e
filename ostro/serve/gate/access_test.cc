// Keys: which are let in, from which file, and when no more.
#include "ostro/serve/gate/access.h"

#include <doctest/doctest.h>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::serve {
namespace {

http::Request request(const std::string& path, const std::string& word = "",
                      const std::string& host = "localhost", const std::string& origin = "") {
  http::Request out{path, {}, {{"host", host}}};
  if (!word.empty()) out.headers["authorization"] = word;
  if (!origin.empty()) out.headers["origin"] = origin;
  return out;
}

void write(io::FileSystem& fs, const std::string& text) {
  auto file = fs.create("keys").value();
  REQUIRE(file->append(text).ok());
}

int status(Access& access, const http::Request& one) {
  const auto refused = access.refusal(one);
  return refused ? refused->status : 200;
}

TEST_CASE("a key is let in as long as its hash is in the file") {
  io::MemoryFileSystem fs;
  const std::string anna = sha256_hex("key of anna") + "  anna\n",
                    ben = sha256_hex("key of ben") + "\tben b.\r\n";
  write(fs, "# people\n\n" + anna + ben);
  auto keys = ApiKeys::open(fs, "keys");
  REQUIRE_MESSAGE(keys.ok(), keys.error().message());
  CHECK(keys->owner("key of anna") == "anna");
  CHECK(keys->owner("key of ben") == "ben b.");
  for (const char* wrong : {"", "key of ann", "key of anna ", "anna"}) CHECK(keys->owner(wrong).empty());
  CHECK(keys->owner(sha256_hex("key of anna")).empty());

  Access access = Access::create(http::parse_address("0.0.0.0:8080").value(), std::move(*keys)).value();
  const http::Request good =
      request("/v1/models", "Bearer key of anna", "any.example", "https://other.example");
  CHECK(status(access, good) == 200);
  CHECK(status(access, request("/v1/models", "bearer key of ben")) == 200);
  for (const char* open : {"/", "/health", "/ready"}) CHECK(status(access, request(open)) == 200);
  for (const char* word : {"", "key of anna", "Bearer ", "Bearer key", "Basic a2V5IG9mIGFubmE="})
    CHECK(status(access, request("/metrics", word)) == 401);
  CHECK(error_response(*access.refusal(request("/v1/models"))).headers[0].second == "Bearer");

  const auto owner = [&](const char* word) { return access.owner(request("/v1/completions", word)); };
  CHECK(owner("Bearer key of anna") == owner("bearer key of anna"));
  CHECK(owner("Bearer key of anna") != owner("Bearer key of ben"));
  CHECK_FALSE(owner("Bearer key of anna").empty());

  // /metrics is for the key of that name, which has nothing else. The only key shares with no other.
  const auto sharer = [&](const char* word) { return access.sharer(request("/v1/completions", word)); };
  CHECK(sharer("Bearer key of anna") == owner("Bearer key of anna"));
  CHECK(status(access, request("/metrics", "Bearer key of anna")) == 403);
  write(fs, anna + sha256_hex("key of prometheus") + " metrics\n");
  CHECK(status(access, request("/metrics", "Bearer key of prometheus")) == 200);
  CHECK(status(access, request("/metrics", "Bearer key of anna")) == 403);
  CHECK(status(access, request("/v1/completions", "Bearer key of prometheus")) == 403);
  CHECK(status(access, request("/v1/completions", "Bearer key of anna")) == 200);
  CHECK(status(access, request("/health", "Bearer key of prometheus")) == 200);
  CHECK(sharer("Bearer key of anna").empty());

  write(fs, ben);
  CHECK(status(access, good) == 401);
  CHECK(status(access, request("/v1/models", "Bearer key of ben")) == 200);
  // A file that is wrong lets no client in, and the log has it once.
  std::string log;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { log += line; });
  write(fs, ben + "rubbish\n");
  for (int i = 0; i < 2; ++i) CHECK(status(access, request("/v1/models", "Bearer key of ben")) == 503);
  set_log_sink(before);
  CHECK(log.find("keys: line 2 does not begin with a hash") != std::string::npos);
  CHECK(log.find("keys: line 2") == log.rfind("keys: line 2"));
  write(fs, anna);
  CHECK(status(access, good) == 200);
  REQUIRE(fs.remove("keys").ok());
  CHECK(status(access, good) == 503);
}

TEST_CASE("a file of keys that cannot be one is refused with the line") {
  io::MemoryFileSystem fs;
  const std::string hash = sha256_hex("a");
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "no key is in it"},
           {"# " + hash + " a\n", "no key is in it"},
           {hash, "line 1 has no name"},
           {hash + "a", "line 1 has no name"},
           {"sk-123 anna", "line 1 does not begin with a hash"},
           {hash + " a\n" + hash + " b\n", "line 2 has the key of a line before it"},
           {hash + " a\n\n" + sha256_hex("b") + " a\n", "line 3 has the name of a line before it"}}) {
    write(fs, text);
    const auto keys = ApiKeys::open(fs, "keys");
    REQUIRE_FALSE(keys.ok());
    CHECK_MESSAGE(keys.error().message().find(says) != std::string::npos, keys.error().message());
  }
  CHECK_FALSE(ApiKeys::open(fs, "none").ok());
}

TEST_CASE("without keys a server is for this machine") {
  CHECK_FALSE(Access::create(http::parse_address("0.0.0.0:8080").value(), std::nullopt).ok());
  Access loopback = Access::create(http::parse_address("127.0.0.1:0").value(), std::nullopt).value();
  CHECK(status(loopback, request("/v1/models")) == 200);
  CHECK(status(loopback, request("/v1/models", "", "localhost:80", "http://localhost:80")) == 200);
  CHECK(status(loopback, request("/v1/models", "", "localhost", "http://evil.example")) == 403);
  CHECK(status(loopback, request("/v1/models", "", "evil.example")) == 403);
  CHECK(loopback.owner(request("/v1/completions", "Bearer any")).empty());
  Access file = Access::create(http::parse_address_or_path("unix:/tmp/x").value(), std::nullopt).value();
  CHECK(status(file, request("/v1/models", "", "any.example", "https://any.example")) == 200);
  CHECK(status(file, request("/v1/models", "", "any.example", "https://evil.example")) == 403);
}

}  // namespace
}  // namespace ostro::serve
