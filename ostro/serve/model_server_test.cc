// The server as a client sees it: before the model is there, when too much waits, and at its end.
#include "ostro/serve/model_server.h"

#include <condition_variable>
#include <latch>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "ostro/base/sha256.h"
#include "ostro/http/client_for_test.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/serve/model_for_test.h"

namespace ostro::serve {
namespace {

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"; }

std::string post_of(const std::string& body, const std::string& path = "/v1/completions") {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::unique_ptr<ModelServer> listening(const ServerLimits& limits = {}) {
  auto out = ModelServer::start(*http::parse_address("127.0.0.1:0"), std::nullopt, limits);
  REQUIRE_MESSAGE(out.ok(), out.error().message());
  return std::move(*out);
}

// Gives the server the test's model; `before_step` as in FormulaRunner.
void serve(ModelServer& server, io::FileSystem& fs, std::function<void()> before_step = {}) {
  auto model = std::make_unique<ServedModel>(test_model());
  static_cast<FormulaRunner&>(*model->runner).before_step = std::move(before_step);
  check_ok(server.serve(std::move(model), ReceiptMaker::open(fs, "", {}).value()));
}

constexpr const char* kAsk = R"({"prompt": [1, 2], "max_tokens": 9, "seed": 4})";

TEST_CASE("before the model is there, the server lives and is not ready") {
  io::MemoryFileSystem fs;
  const auto server = listening();
  CHECK(http::answer(server->port(), get("/health")).starts_with("HTTP/1.1 200 "));
  for (const std::string& request : {get("/ready"), get("/v1/models"), post_of(kAsk)}) {
    const std::string got = http::answer(server->port(), request);
    CHECK(got.starts_with("HTTP/1.1 503 "));
    CHECK(got.find("Retry-After: 1") != std::string::npos);
    CHECK(got.find("the model is being loaded") != std::string::npos);
  }
  serve(*server, fs);
  CHECK(http::answer(server->port(), get("/ready")).starts_with("HTTP/1.1 200 "));
  CHECK(http::answer(server->port(), get("/v1/models")).find("\"data\":[{\"id\":\"test\"") !=
        std::string::npos);
  CHECK(http::answer(server->port(), post_of(kAsk)).starts_with("HTTP/1.1 200 "));
}

TEST_CASE("every method and path has an answer that says what there is") {
  io::MemoryFileSystem fs;
  const auto server = listening();
  serve(*server, fs);
  const auto asked = [&](const std::string& method, const std::string& path) {
    return http::answer(server->port(),
                        method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  };
  for (const char* path :
       {"/", "/health", "/ready", "/metrics", "/v1/models", "/v1/models/test", "/tokenizer_info"}) {
    CHECK_MESSAGE(asked("GET", path).starts_with("HTTP/1.1 200 "), path);
    const std::string head = asked("HEAD", path);
    CHECK_MESSAGE(head.starts_with("HTTP/1.1 200 "), path);
    CHECK_MESSAGE(head.ends_with("\r\n\r\n"), path);
    CHECK_MESSAGE(asked("OPTIONS", path).find("Allow: GET, HEAD, OPTIONS\r\n") != std::string::npos, path);
    for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "NONSENSE"})
      CHECK_MESSAGE(asked(method, path).find("{\"error\":") != std::string::npos, method);
  }
  CHECK(asked("OPTIONS", "/v1/responses").starts_with("HTTP/1.1 204 "));
  for (const char* method : {"GET", "HEAD", "PUT"}) {
    const std::string got = asked(method, "/v1/chat/completions");
    CHECK(got.starts_with("HTTP/1.1 405 "));
    CHECK(got.find("Allow: POST, OPTIONS\r\n") != std::string::npos);
  }
  CHECK(asked("GET", "/v1/models/other").find("this server has \\\"test\\\"") != std::string::npos);
  CHECK(asked("GET", "/none").find("this server has /v1/completions, ") != std::string::npos);
  CHECK(asked("GET", "/metrics")
            .find("ostro_requests_total{path=\"/v1/chat/completions\",status=\"405\"} 3\n") !=
        std::string::npos);
  const std::string page = asked("GET", "/");
  CHECK(page.find("Content-Security-Policy: default-src 'none'; ") != std::string::npos);
  CHECK(page.size() < 100'000);
}

TEST_CASE("another model answers what comes later; a request stays with the one that it began with") {
  io::MemoryFileSystem fs;
  std::latch running(1), go_on(1);
  const auto server = listening();
  serve(*server, fs, [&, first = true]() mutable {
    if (std::exchange(first, false)) running.count_down();
    go_on.wait();
  });
  std::string before;
  std::thread client([&] { before = http::answer(server->port(), post_of(kAsk)); });
  running.wait();
  for (int i = 0; i < 3; ++i) {
    auto model = std::make_unique<ServedModel>(test_model());
    model->facts.state = std::string(64, static_cast<char>('b' + i));
    check_ok(server->replace(std::move(model)));
    server->drop_earlier();
    const std::string after = http::answer(server->port(), post_of(kAsk));
    CHECK(after.find("ostro-1-" + std::string(64, static_cast<char>('b' + i))) != std::string::npos);
    CHECK(http::answer(server->port(), get("/v1/models")).find(std::string(64, static_cast<char>('b' + i))) !=
          std::string::npos);
  }
  go_on.count_down();
  client.join();
  CHECK(before.find("ostro-1-" + std::string(64, 'a')) != std::string::npos);
  server->drop_earlier();
}

TEST_CASE("what may not wait gets 429; at the end what was taken is answered, and nothing else is taken") {
  io::MemoryFileSystem fs;
  std::latch running(1), go_on(1);
  const auto server = listening({.waiting = 2});
  serve(*server, fs, [&, first = true]() mutable {
    if (std::exchange(first, false)) running.count_down();
    go_on.wait();
  });
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> good, refused;
  std::vector<std::thread> clients;
  const auto ask = [&] {
    clients.emplace_back([&] {
      const std::string got = http::answer(server->port(), post_of(kAsk));
      const std::lock_guard lock(mutex);
      (got.starts_with("HTTP/1.1 200 ") ? good : refused).push_back(got);
      changed.notify_one();
    });
  };
  ask();
  running.wait();
  // The model is busy until go_on: of six more requests two wait for it.
  for (int i = 0; i < 6; ++i) ask();
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return refused.size() == 4; });
  }
  bool drained = false;
  std::thread draining([&] { drained = server->drain(std::chrono::seconds(60)); });
  while (http::answer(server->port(), get("/ready")).find("503 ") == std::string::npos)
    std::this_thread::yield();
  CHECK(http::answer(server->port(), post_of(kAsk)).find("the server stops") != std::string::npos);
  go_on.count_down();
  for (std::thread& client : clients) client.join();
  draining.join();
  CHECK(drained);
  CHECK(refused.size() == 4);
  for (const std::string& got : refused) {
    CHECK(got.starts_with("HTTP/1.1 429 "));
    CHECK(got.find("Retry-After: 1") != std::string::npos);
  }
  REQUIRE(good.size() == 3);
  for (std::string& got : good) got.erase(0, got.find("\"choices\""));
  CHECK(good[0] == good[1]);
  CHECK(good[0] == good[2]);
}

TEST_CASE("a key that has its share of what may wait gets 429, and another key is answered") {
  io::MemoryFileSystem fs;
  check_ok(io::write_file_atomically(fs, "keys", sha256_hex("anna") + " a\n" + sha256_hex("ben") + " b\n"));
  std::latch running(1), go_on(1);
  auto started = ModelServer::start(*http::parse_address("127.0.0.1:0"), ApiKeys::open(fs, "keys").value(),
                                    {.waiting = 4, .key_share = 50});
  REQUIRE_MESSAGE(started.ok(), started.error().message());
  const std::unique_ptr<ModelServer> server = std::move(*started);
  serve(*server, fs, [&, first = true]() mutable {
    if (std::exchange(first, false)) running.count_down();
    go_on.wait();
  });
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> good, refused;
  std::vector<std::thread> clients;
  const auto ask = [&](const std::string& key) {
    std::string request = post_of(kAsk);
    request.insert(request.find("\r\n") + 2, "Authorization: Bearer " + key + "\r\n");
    clients.emplace_back([&, request] {
      const std::string got = http::answer(server->port(), request);
      const std::lock_guard lock(mutex);
      (got.starts_with("HTTP/1.1 200 ") ? good : refused).push_back(got);
      changed.notify_one();
    });
  };
  ask("anna");
  running.wait();
  for (int i = 0; i < 5; ++i) ask("anna");  // two of them wait
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return refused.size() == 3; });
  }
  for (int i = 0; i < 2; ++i) ask("ben");
  go_on.count_down();
  for (std::thread& client : clients) client.join();
  CHECK(good.size() == 5);
  REQUIRE(refused.size() == 3);
  for (const std::string& got : refused) {
    CHECK(got.starts_with("HTTP/1.1 429 "));
    CHECK(got.find("2 requests of this key wait already, which is its share of the 4") != std::string::npos);
    CHECK(got.find("Retry-After: 1") != std::string::npos);
  }
}

TEST_CASE("the server's limits of time are those of its requests") {
  io::MemoryFileSystem fs;
  const auto asked = [&](const TimeLimits& times) {
    const auto server = listening({.times = times});
    serve(*server, fs);
    return http::answer(server->port(),
                        post_of(R"({"prompt": [1, 2], "max_tokens": 9, "seed": 4, "return_token_ids": true, )"
                                R"("logit_bias": {")" +
                                std::to_string(test_model().stops[0]) + R"(": -100}})"));
  };
  const auto choice = [](const std::string& got) {
    REQUIRE_MESSAGE(got.starts_with("HTTP/1.1 200 "), got);
    return nlohmann::ordered_json::parse(got.substr(got.find("\r\n\r\n") + 4))["choices"][0];
  };
  using std::chrono::seconds;
  const std::string late = asked({.waiting = seconds(0)});
  CHECK(late.starts_with("HTTP/1.1 503 "));
  CHECK(late.find("\"wait_limit\"") != std::string::npos);
  const auto cut = choice(asked({.running = seconds(0)})), whole = choice(asked({}));
  CHECK(cut["token_ids"].size() == 1);
  CHECK(cut["finish_reason"] == "length");
  CHECK(cut["ended_by"] == "running_seconds");
  CHECK(whole["token_ids"].size() == 9);  // the control
}

TEST_CASE("a server that may not wait longer says so to those whose answers it ends") {
  io::MemoryFileSystem fs;
  std::latch running(1), go_on(1);
  auto server = listening();
  serve(*server, fs, [&, first = true]() mutable {
    if (std::exchange(first, false)) running.count_down();
    go_on.wait();
  });
  http::Client client(server->port());
  client.say(post_of(kAsk));
  running.wait();
  CHECK_FALSE(server->drain(std::chrono::milliseconds(1)));
  std::thread ending([&] { server.reset(); });
  go_on.count_down();
  const std::string got = client.hear();
  ending.join();
  CHECK((got.starts_with("HTTP/1.1 503 ") || got.starts_with("HTTP/1.1 200 ")));  // it may have been done
}

TEST_CASE("other machines cannot reach it without keys") {
  const auto refused = ModelServer::start(*http::parse_address("0.0.0.0:0"), std::nullopt, {});
  REQUIRE(!refused.ok());
  CHECK(refused.error().message().find("ssh -L") != std::string::npos);
}

}  // namespace
}  // namespace ostro::serve
