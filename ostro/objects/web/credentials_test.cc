// When keys are renewed, by whom, and who waits for it.
#include "ostro/objects/web/credentials.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "ostro/io/files/local_file_system.h"
#include "ostro/objects/s3/fake_s3_for_test.h"
#include "ostro/objects/s3/s3_client.h"
#include "ostro/objects/web/key_server_for_test.h"

using namespace ostro;
using namespace ostro::io;
using namespace ostro::objects;

namespace {

// A clock whose pauses are used by another process.
struct ClockWithPauses final : RetryClock {
  std::function<void()> in_pause;
  int64_t now = 0;
  int64_t now_ms() override { return now; }
  int64_t outside_ms() override { return now; }
  void sleep_ms(int64_t ms, std::stop_token) override {
    now += ms;
    in_pause();
  }
};

}  // namespace

TEST_CASE("credentials: a web identity gives keys of its role, and new ones before they end") {
  const KeyFile token("token", "first&token\n");
  KeyServer server;
  FakeClock clock;
  int given = 0;
  int64_t lives = 3600;
  server.at["POST http://sts/"] = [&](const HttpRequest& request) {
    CHECK(request.access_key.empty());
    return says(sts_answer(++given, lives));
  };
  Credentials credentials(places_of({{"AWS_ROLE_ARN", "arn:aws:iam::1:role/r"},
                                     {"AWS_WEB_IDENTITY_TOKEN_FILE", token.path},
                                     {"AWS_ENDPOINT_URL_STS", "http://sts/"}}),
                          server, clock);
  const auto key = [&] { return credentials.keys().value().access_key; };
  CHECK(credentials.keys().value().session_token == "t1");
  CHECK(server.bodies[0] ==
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&"
        "RoleSessionName=ostro&WebIdentityToken=first%26token");
  CHECK(credentials.place() == "the role arn:aws:iam::1:role/r by the token in " + token.path);
  // The control of what follows: keys that are good for long are not asked for again.
  clock.now += 3'000'000;
  CHECK(key() == "k1");
  // A server refuses them; the token in the file is another one by now, and these keys end soon.
  token.write("second");
  lives = 200;
  CHECK(credentials.renew(credentials.keys().value()).value());
  CHECK(server.bodies[1].ends_with("WebIdentityToken=second"));
  clock.now += 29'000;
  CHECK(key() == "k2");
  clock.now += 2'000;
  CHECK(key_twice(credentials) == std::pair<std::string, std::string>("k2", "k3"));
  // While STS is away, keys that are good for minutes are used; it is asked once in half a minute.
  server.at.clear();
  server.asked.clear();
  clock.now += 31'000;
  CHECK(key_twice(credentials) == std::pair<std::string, std::string>("k3", "k3"));
  CHECK(server.asked.size() == 1);
  // When a server refuses them, it is asked three times, and its silence is the error, also of the threads
  // that come in the next seconds. The error says nothing about an object.
  const std::string place = credentials.place();
  for (int i = 0; i < 2; ++i) {
    const auto renewed = credentials.renew(credentials.keys().value());
    REQUIRE_FALSE(renewed.ok());
    CHECK(renewed.error().code() == ErrorCode::kIo);
    CHECK(server.asked.size() == 4);
  }
  CHECK(credentials.place() == place);
  clock.now += 6'000;
  CHECK_FALSE(credentials.renew(credentials.keys().value()).ok());
  CHECK(server.asked.size() == 7);
}

TEST_CASE("credentials: who has keys that are good for minutes does not wait for new ones") {
  const KeyFile token("blocks", "t");
  KeyServer server;
  FakeClock clock;
  std::mutex mutex;
  std::condition_variable_any changed;
  bool blocks = false, entered = false, stopped = false;
  int given = 0;
  int64_t lives = 200;
  // Bounds that only a failure reaches.
  const std::chrono::seconds patience{60};
  server.at["POST http://sts/"] = [&](const HttpRequest& request) -> HttpResponse {
    std::unique_lock lock(mutex);
    entered = true;
    changed.notify_all();
    changed.wait_for(lock, request.stop, patience, [&] { return !blocks; });
    stopped = blocks && request.stop.stop_requested();
    if (blocks) return {.status = 0, .failure = "nothing came"};
    return says(sts_answer(++given, lives));
  };
  const auto wait_for_server = [&] {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, patience, [&] { return entered; });
  };
  const auto block = [&](bool on) {
    const std::lock_guard lock(mutex);
    blocks = on, entered = false;
    changed.notify_all();
  };
  auto credentials = std::make_unique<Credentials>(places_of({{"AWS_ROLE_ARN", "r"},
                                                              {"AWS_WEB_IDENTITY_TOKEN_FILE", token.path},
                                                              {"AWS_ENDPOINT_URL_STS", "http://sts"}}),
                                                   server, clock);
  const auto key = [&] { return credentials->keys().value().access_key; };
  CHECK(key() == "k1");
  CHECK(key() == "k1");  // keys that end soon are not read twice at the start
  CHECK(given == 1);
  block(true);
  clock.sleep_ms(31'000, {});
  CHECK(key() == "k1");
  CHECK(wait_for_server());
  clock.sleep_ms(31'000, {});  // another renewal would be due while this one goes on
  auto other = std::async(std::launch::async, key);
  CHECK(other.wait_for(patience / 2) == std::future_status::ready);
  block(false);
  CHECK(other.get() == "k1");
  credentials->settle();
  CHECK(key() == "k2");
  // The control: keys that have ended are waited for.
  lives = -10;
  CHECK(credentials->renew(credentials->keys().value()).value());
  lives = 200;
  clock.sleep_ms(31'000, {});
  CHECK(key() == "k4");
  // The end of the process does not wait either.
  block(true);
  clock.sleep_ms(31'000, {});
  CHECK(key() == "k4");
  CHECK(wait_for_server());
  credentials.reset();
  CHECK(stopped);
}

TEST_CASE("credentials: a renewal asks what gave keys before, and nothing else") {
  const std::string own = "[default]\naws_access_key_id=a\naws_secret_access_key=b\n";
  const KeyFile file("same", own);
  const KeyFile config("same_config", "");
  KeyServer server;
  FakeClock clock;
  const std::string container = "http://127.0.0.1:9/v2/secret-id";
  server.at["GET " + container] = [](const HttpRequest&) {
    return says(R"({"AccessKeyId":"c","SecretAccessKey":"s","Token":"t"})");
  };
  CredentialPlaces places{.file = file.path, .config = config.path, .profile = "default", .url = container};
  Credentials credentials(places, server, clock);
  CHECK(credentials.keys().value().access_key == "a");
  const auto renewed = [&] {
    clock.now += 6'000;
    const auto other = credentials.renew(credentials.keys().value());
    return other.ok() ? credentials.keys().value().access_key : other.error().message();
  };
  // It is being written; another file of the profile has keys; it cannot be read; it has new keys.
  file.write("");
  CHECK(renewed().starts_with("profile default of " + file.path +
                              " gave keys for s3:// before, and gives none"));
  config.write("[default]\naws_access_key_id=d\naws_secret_access_key=e\n");
  CHECK(renewed().find("now there are some of profile default of " + config.path) != std::string::npos);
  check_ok(local_file_system().remove(file.path));
  CHECK(renewed().find("now there are some of") != std::string::npos);
  CHECK(server.asked.empty());
  CHECK(credentials.keys().value().access_key == "a");
  CHECK(credentials.place() == "profile default of " + file.path);
  file.write("[default]\naws_access_key_id=f\naws_secret_access_key=g\n");
  CHECK(renewed() == "f");
  // The control: who had none of the file takes the next source. Its path is not shown.
  file.write(""), config.write("");
  Credentials next(places, server, clock);
  CHECK(next.keys().value().access_key == "c");
  CHECK(next.place() == "http://127.0.0.1:9");
  server.at.clear();
  CHECK(next.renew(next.keys().value()).error().message() ==
        "http://127.0.0.1:9: no keys for s3://: Connection refused");
  // A file that is written anew while keys are read again.
  ClockWithPauses pauses;
  file.write(own);
  Credentials slow(places, server, pauses);
  CHECK(slow.keys().value().access_key == "a");
  file.write("");
  pauses.in_pause = [&] { file.write("[default]\naws_access_key_id=h\naws_secret_access_key=i\n"); };
  CHECK(slow.renew(slow.keys().value()).value());
  CHECK(slow.keys().value().access_key == "h");
  CHECK(pauses.now == 500);
  // A file that is there and cannot be looked at is not taken for one that is not there.
  places.file = "/tmp/" + std::string(300, 'x');
  CHECK_FALSE(Credentials(places, server, clock).keys().ok());
}

TEST_CASE("credentials: a refusal that does not say why is no reason to ask for keys each time") {
  struct Server final : HttpClient {
    std::string end;
    int given = 0, status = 403;
    HttpResponse perform(const HttpRequest& request) override {
      if (request.method == "HEAD") return {.status = status};
      return says(
          fmt::format(R"({{"AccessKeyId":"k{}","SecretAccessKey":"s","Token":"t"{}}})", ++given, end));
    }
  };
  for (const bool ends : {false, true}) {
    Server server;
    if (ends) server.end = fmt::format(R"(,"Expiration":"{}")", date_in(3600));
    FakeClock clock;
    S3Options options{.endpoint = "http://s3"};
    options.credentials.url = "http://localhost/keys";
    S3Client client(options, server, clock);
    const auto given_after = [&](int64_t ms) {
      clock.now += ms;
      CHECK_FALSE(client.head({"b", "k"}).ok());
      return server.given;
    };
    CHECK(given_after(0) == 1);
    CHECK(given_after(29'000) == 1);
    // Without an end they may have expired; with one they have not.
    CHECK(given_after(2'000) == (ends ? 1 : 2));
    CHECK(given_after(1'000) == (ends ? 1 : 2));
    // The control: 400 to HEAD is no lack of permission.
    server.status = 400;
    CHECK(given_after(0) == (ends ? 2 : 3));
  }
}
