#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ostro/http/client_for_test.h"
#include "ostro/http/gate.h"
#include "ostro/http/server.h"

namespace ostro::http {
namespace {

std::unique_ptr<Server> started(Handler handler, const Limits& limits = {}) {
  const auto address = parse_address("127.0.0.1:0");
  REQUIRE(address.ok());
  auto server = Server::start(*address, std::move(handler), limits);
  REQUIRE_MESSAGE(server.ok(), server.error().message());
  return std::move(*server);
}

Response echo(const Request& request) {
  std::string body = request.path;
  for (const auto& [name, value] : request.query) body += " " + name + "=" + value;
  const auto header = request.headers.find("x-a");
  return {200, "text/plain; charset=utf-8",
          body + (header == request.headers.end() ? "" : " " + header->second)};
}

TEST_CASE("a server answers GET and HEAD, and nothing else") {
  const auto server = started(echo);
  REQUIRE(server->port() > 0);
  const std::string got =
      answer(server->port(), "GET /a/b?x=1%202&y HTTP/1.1\r\nHost: localhost\r\nX-A: z\r\n\r\n");
  CHECK(got.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(got.ends_with("\r\n\r\n/a/b x=1 2 y= z"));
  for (const char* header :
       {"Connection: close", "Cache-Control: no-store", "X-Content-Type-Options: nosniff"})
    CHECK(got.find(header) != std::string::npos);
  const std::string head = answer(server->port(), "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(head.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(head.ends_with("\r\n\r\n"));
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    const std::string no = answer(
        server->port(), std::string(method) + " / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    CHECK(no.starts_with("HTTP/1.1 405 "));
    CHECK(no.find("Allow: GET, HEAD") != std::string::npos);
  }
}

TEST_CASE("what is no request, or too long a one, ends its connection and nothing else") {
  const auto server = started(echo, {.memory = 4096});
  for (const std::string& text :
       {std::string("\r\n\r\n\r\n"), std::string("nonsense\r\n\r\n"), std::string("GET\r\n\r\n"),
        "GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nA: " + std::string(20'000, 'a') + "\r\n\r\n",
        std::string("\0\x16\x03\x01", 4) + "\r\n\r\n"}) {
    Client client(server->port());
    client.say(text);
  }
  CHECK(answer(server->port(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").ends_with("\r\n\r\n/"));
}

// libmicrohttpd 0.9.75 dies of it, unless connections have ended before it stops.
TEST_CASE("a server may stop while faulty requests arrive") {
  const std::string too_long = "GET /" + std::string(8000, 'a') + " HTTP/1.1\r\n\r\n";
  for (int round = 0; round < 200; ++round) {
    auto server = started(echo, {.memory = 4096});
    // They connect in this thread, in which a connection that fails ends the case and not the process.
    std::vector<std::vector<std::unique_ptr<Client>>> connected(4);
    for (auto& all : connected)
      for (int i = 0; i < 24; ++i) all.push_back(std::make_unique<Client>(server->port()));
    std::vector<std::thread> clients;
    for (auto& some : connected)
      clients.emplace_back([&too_long, all = std::move(some)] {
        for (const auto& one : all) {
          one->say(too_long);
          std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
      });
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (round % 8)));
    server = nullptr;
    for (std::thread& client : clients) client.join();
  }
}

TEST_CASE("a header that does not end in time ends its connection, and others are answered meanwhile") {
  const auto server = started(echo, {.header = std::chrono::seconds(3)});  // for the other one, too
  Client slow(server->port());
  slow.say("GET / HTTP/1.1\r\nX-Slow: ");
  CHECK(answer(server->port(), "GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n").ends_with("/other"));
  CHECK(slow.hear().find("200 OK") == std::string::npos);  // returns when the server has ended the connection
}

TEST_CASE("connections that bring no request leave room for those that do") {
  const auto server =
      started(echo, {.header = std::chrono::minutes(30), .connections = 8, .connections_of_address = 8});
  std::vector<std::unique_ptr<Client>> idle;
  // Without a limit of their own, eight of them keep all others out, and hear() hangs.
  for (int i = 0; i < 20; ++i) {
    idle.push_back(std::make_unique<Client>(server->port()));
    if (i % 2 == 0) idle.back()->say("GET / HTTP/1.1\r\n");
  }
  for (int i = 0; i < 16; ++i)
    CHECK(idle[static_cast<size_t>(i)]->hear().empty());  // ended, the oldest first
  CHECK(answer(server->port(), "GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n").ends_with("/other"));
  idle.back()->say("GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(idle.back()->hear().ends_with("/late"));
}

// A server whose answers a test gives by hand.
struct Waiting {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<Exchange>> exchanges;

  std::unique_ptr<Server> start(const Limits& limits) {
    auto server = Server::start_service(
        *parse_address("127.0.0.1:0"),
        [this](std::shared_ptr<Exchange> one) {
          const std::lock_guard lock(mutex);
          exchanges.push_back(std::move(one));
          changed.notify_one();
        },
        limits);
    REQUIRE_MESSAGE(server.ok(), server.error().message());
    return std::move(*server);
  }
  std::shared_ptr<Exchange> next() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return !exchanges.empty(); });
    auto out = std::move(exchanges.back());
    exchanges.pop_back();
    return out;
  }
};

TEST_CASE("connections beyond the limit of an address are ended, and none that is idle fills it") {
  Waiting waiting;
  const auto server =
      waiting.start({.header = std::chrono::minutes(30), .connections = 8, .connections_of_address = 4});
  const auto ask = [&](const std::string& path) {
    auto client = std::make_unique<Client>(server->port());
    client->say("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return std::pair(std::move(client), waiting.next());
  };
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 10; ++i) idle.push_back(std::make_unique<Client>(server->port()));
  for (int i = 0; i < 8; ++i) CHECK(idle[static_cast<size_t>(i)]->hear().empty());  // the oldest
  idle.clear();
  // Those whose answers are to come do fill it.
  std::vector<std::pair<std::unique_ptr<Client>, std::shared_ptr<Exchange>>> held;
  for (int i = 0; i < 4; ++i) held.push_back(ask("/held"));
  CHECK(Client(server->port()).hear().empty());
  held.back().second->answer({200, "text/plain", "at last"});
  CHECK(held.back().first->hear().ends_with("at last"));
}

std::string post(const std::string& body) {
  return "POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

TEST_CASE("answers come later, whole or in pieces, while others are answered") {
  Waiting waiting;
  const auto server = waiting.start({.body = 100'000});
  Client whole(server->port()), pieces(server->port());
  const std::string body(70'000, 'b');  // longer than a connection's memory
  whole.say(post(body));
  const auto first = waiting.next();
  CHECK(first->request().method == "POST");
  CHECK(first->request().body == body);
  pieces.say("GET /ask HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto second = waiting.next();
  second->begin({200, "text/event-stream", "", {{"X-More", "1"}}});
  second->send("data: 1\n\n");
  CHECK(pieces.hear_until("data: 1\n\n").find("X-More: 1") != std::string::npos);
  second->send("data: 2\n\n");
  second->end();
  CHECK(pieces.hear().find("data: 2\n\n") != std::string::npos);
  first->answer({429, "application/json", "{}", {{"Retry-After", "1"}}});
  const std::string got = whole.hear();
  CHECK(got.starts_with("HTTP/1.1 429 "));
  CHECK(got.find("Retry-After: 1\r\n") != std::string::npos);
  CHECK(got.ends_with("\r\n\r\n{}"));
}

TEST_CASE("a body that is too large is left out, and the request says so") {
  Waiting waiting;
  const auto server = waiting.start({.body = 1000});
  Client client(server->port());
  client.say(post(std::string(100'000, 'x')));
  const auto exchange = waiting.next();
  CHECK(exchange->request().body_too_large);
  CHECK(exchange->request().body.empty());
  exchange->answer({413});
  CHECK(client.hear().starts_with("HTTP/1.1 413 "));
  // What another method is answered with, the service says.
  Client other(server->port());
  other.say("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  const auto put = waiting.next();
  CHECK(put->request().method == "PUT");
  put->answer({405, "text/plain", "", {{"Allow", "GET"}}});
  CHECK(other.hear().find("Allow: GET") != std::string::npos);
}

TEST_CASE("waiting for an answer is not idling") {
  Waiting waiting;
  const auto server = waiting.start({.idle = std::chrono::seconds(1), .body = 1000});
  Client whole(server->port()), pieces(server->port());
  whole.say(post("a"));
  const auto first = waiting.next();
  pieces.say(post("b"));
  const auto second = waiting.next();
  second->begin({200, "text/event-stream"});
  second->send("1");
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // longer than `idle`
  first->answer({200, "text/plain", "late"});
  CHECK(whole.hear().ends_with("late"));
  second->send("2");
  second->end();
  CHECK(pieces.hear().find('2') != std::string::npos);
}

TEST_CASE("a body that does not come in time ends its connection") {
  Waiting waiting;
  const auto server = waiting.start({.body_time = std::chrono::milliseconds(100), .body = 1000});
  Client client(server->port());
  client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
  CHECK(client.hear().empty());
}

TEST_CASE("a client that has left is noticed while it waits and between pieces") {
  Waiting waiting;
  const auto server = waiting.start({.body = 1000});
  const auto gone = [](const Exchange& exchange) {
    const auto begin = std::chrono::steady_clock::now();
    while (!exchange.is_gone() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20))
      std::this_thread::yield();
    return exchange.is_gone();
  };
  for (const bool streams : {false, true}) {
    auto client = std::make_unique<Client>(server->port());
    client->say(post("a"));
    const auto exchange = waiting.next();
    if (streams) {
      exchange->begin({200, "text/event-stream"});
      exchange->send("data: 1\n\n");
      client->hear_until("data: 1\n\n");
    }
    CHECK(!exchange->is_gone());
    client.reset();
    CHECK(gone(*exchange));
    exchange->send("more");
    exchange->end();
  }
}

bool becomes(const std::function<bool()>& is) {
  const auto begin = std::chrono::steady_clock::now();
  while (!is() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20))
    std::this_thread::yield();
  return is();
}

TEST_CASE("a client that does not read its pieces is dropped, and one that reads gets them all") {
  Waiting waiting;
  const auto server =
      waiting.start({.unread = 10'000, .unread_time = std::chrono::milliseconds(100), .body = 9});
  const std::string piece(50'000, 'p');
  Client deaf(server->port());
  deaf.say(post("a"));
  const auto held = waiting.next();
  held->begin({200, "text/event-stream"});
  int64_t sent = 0;
  // The system keeps some megabytes for a socket; without a limit this would go on to the end.
  CHECK(becomes([&] {
    if (held->is_full() || sent == 10'000) return held->is_gone();
    held->send(piece);
    ++sent;
    return held->is_gone();
  }));
  CHECK(sent < 10'000);
  held->send("more");
  held->end();
  CHECK(server->wait_until_answered(std::chrono::seconds(20)));
  // The control: another server gives time.
  const auto patient = waiting.start({.unread = 10'000, .body = 9});
  Client reader(patient->port());
  reader.say(post("b"));
  const auto exchange = waiting.next();
  exchange->begin({200, "text/event-stream"});
  std::thread sender([&] {
    for (int i = 0; i < 300; ++i) {
      CHECK(becomes([&] { return !exchange->is_full(); }));
      exchange->send(piece);
    }
    exchange->end();
  });
  const std::string got = reader.hear();
  sender.join();
  CHECK(std::count(got.begin(), got.end(), 'p') >= int64_t{300} * 50'000);
}

TEST_CASE("a client that does not read a whole answer in its time is dropped") {
  Waiting waiting;
  const auto server =
      waiting.start({.answer_time = std::chrono::milliseconds(100), .answer_rate = 200'000'000, .body = 9});
  const std::string body(40'000'000, 'b');  // more than the system keeps for a socket
  Client deaf(server->port());
  deaf.say(post("a"));
  const auto held = waiting.next();
  held->answer({200, "text/plain", body});
  CHECK(becomes([&] { return held->is_gone(); }));
  CHECK(server->wait_until_answered(std::chrono::seconds(20)));
  CHECK(deaf.hear().size() < body.size());
  // Another server gives it time, and the answer arrives.
  Waiting patient;
  const auto other = patient.start({.body = 9});
  Client reader(other->port());
  reader.say(post("a"));
  const auto read = patient.next();
  std::thread sender([&] { read->answer({200, "text/plain", body}); });
  CHECK(reader.hear().ends_with(body));
  sender.join();
}

TEST_CASE("a server that ends leaves no exchange waiting") {
  Waiting waiting;
  auto server = waiting.start({.body = 1000});
  Client client(server->port());
  client.say(post("a"));
  const auto exchange = waiting.next();
  server.reset();
  CHECK(exchange->is_gone());
  exchange->answer({200});
  CHECK(client.hear().empty());
}

TEST_CASE("an address in use is an error that names it") {
  const auto server = started(echo);
  const std::string text = "127.0.0.1:" + std::to_string(server->port());
  const auto second = Server::start(*parse_address(text), echo);
  REQUIRE(!second.ok());
  CHECK(second.error().message().find("cannot listen at " + text + ": Address already in use") == 0);
}

TEST_CASE("a Unix socket is used by its owner and group, and goes with its server") {
  const std::string path = "/tmp/ostro-http-test-" + std::to_string(::getpid());
  const auto address = parse_address_or_path("unix:" + path);
  REQUIRE(address.ok());
  CHECK(address->is_unix());
  CHECK(!address->is_loopback());
  CHECK(address_text(*address, 0) == "unix:" + path);
  const auto asked = [&] {
    UnixClient client(path);
    client.say("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    return client.hear();
  };
  {
    const auto server = Server::start(*address, echo);
    REQUIRE_MESSAGE(server.ok(), server.error().message());
    CHECK((*server)->port() == 0);
    CHECK(asked().ends_with("\r\n\r\n/a"));
    struct stat there{};
    REQUIRE(::stat(path.c_str(), &there) == 0);
    CHECK((there.st_mode & 0777) == 0660);
    const auto second = Server::start(*address, echo);
    REQUIRE(!second.ok());
    CHECK(second.error().message() == "cannot listen at unix:" + path + ": Address already in use");
  }
  CHECK(::access(path.c_str(), F_OK) != 0);
  {
    // As a server that was killed leaves it.
    const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(::bind(left, reinterpret_cast<const sockaddr*>(&address->socket), address->size) == 0);
    ::close(left);
    const auto server = Server::start(*address, echo);
    REQUIRE_MESSAGE(server.ok(), server.error().message());
    CHECK(asked().ends_with("\r\n\r\n/a"));
  }
  // Another file stays.
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  ::close(file);
  CHECK(!Server::start(*address, echo).ok());
  CHECK(::unlink(path.c_str()) == 0);
  for (const std::string& wrong : {std::string("unix:"), "unix:/" + std::string(200, 'a')})
    CHECK_MESSAGE(!parse_address_or_path(wrong).ok(), wrong);
  CHECK(parse_address_or_path("127.0.0.1:80").ok());
}

TEST_CASE("addresses") {
  for (const char* loopback : {"127.0.0.1:80", "127.8.0.1:0", "[::1]:65535", "localhost:1"}) {
    const auto address = parse_address(loopback);
    REQUIRE_MESSAGE(address.ok(), address.error().message());
    CHECK(address->is_loopback());
  }
  for (const char* open : {"0.0.0.0:80", "[::]:80", "10.0.0.1:80"}) {
    const auto address = parse_address(open);
    REQUIRE_MESSAGE(address.ok(), address.error().message());
    CHECK(!address->is_loopback());
    CHECK(host_and_port(address->host, address->port) == open);
  }
  for (const char* wrong : {"", "80", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                            "127.0.0.1:-1", "::1:80", "300.0.0.1:80"})
    CHECK_MESSAGE(!parse_address(wrong).ok(), wrong);
}

TEST_CASE("a gate on loopback lets in names of this machine only") {
  const Gate gate("");
  for (const char* host : {"localhost", "localhost:80", "127.0.0.1:80", "[::1]", "[::1]:80"})
    CHECK_MESSAGE(!gate.refusal({"/", {}, {{"host", host}}}), host);
  for (const char* host :
       {"", "evil.example", "evil.example:80", "localhost.evil.example", "::1", "127.0.0.1.nip.example"})
    CHECK_MESSAGE(gate.refusal({"/", {}, {{"host", host}}})->status == 403, host);
  CHECK(gate.refusal({"/", {}, {}})->status == 403);
}

TEST_CASE("elsewhere a gate wants the token") {
  const std::string token = new_token();
  CHECK(token.size() == 32);
  CHECK(token != new_token());
  const Gate gate(token);
  CHECK(!gate.refusal({"/", {{"token", token}}, {}}));
  CHECK(!gate.refusal({"/", {}, {{"authorization", "Bearer " + token}}}));
  for (const std::string& wrong :
       {std::string(), token.substr(1), token + "0", std::string(32, '0'), token + token})
    CHECK(gate.refusal({"/", {{"token", wrong}}, {}})->status == 401);
  CHECK(gate.refusal({"/", {{"token", token}}, {{"authorization", "Bearer x"}}})->status == 401);
  CHECK(gate.refusal({"/", {}, {{"host", "localhost"}}})->status == 401);
}

}  // namespace
}  // namespace ostro::http
