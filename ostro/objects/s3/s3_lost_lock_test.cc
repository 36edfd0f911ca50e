// A process that has lost a lock, servers that cannot keep one, and answers that come late or not at all.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/rotated_file.h"
#include "ostro/objects/s3/fake_s3_for_test.h"
#include "ostro/objects/s3/lock_text.h"
#include "ostro/objects/s3/s3_file_system.h"
#include "ostro/objects/web/credentials.h"

using namespace ostro;
using namespace ostro::io;
using namespace ostro::objects;

namespace {

constexpr const char* kLock = "b/run/lock";

// One process, and what another one does to its objects.
struct Fenced {
  FakeS3 http;
  FakeClock clock;
  S3Options options{.endpoint = "http://s3"};
  std::unique_ptr<FileSystem> fs = s3_file_system(options, http, clock);
  std::unique_ptr<FileLock> lock = fs->lock("s3://b/run/lock", "process 1").value();

  // Another process takes the lock, a minute after this one was heard of.
  void lose() {
    clock.sleep_ms(60'000, {});
    http.objects[kLock] = LockText{.owner = "process 9 on far", .term = 3, .process = "boot/pid/9/1"}.text();
    http.write_ids[kLock] = "another";
  }
  // Before the request `line` is carried out for the n-th time.
  void at(std::string line, int n, std::function<void()> act) {
    http.before = [line = std::move(line), n, act = std::move(act)](const std::string& next) mutable {
      if (next == line && --n == 0) act();
    };
  }
  size_t count(std::string_view request) {
    return static_cast<size_t>(std::count(http.log.begin(), http.log.end(), request));
  }
};

std::string words_of(const Status& status) { return status.ok() ? "" : status.error().message(); }
bool says_lost(const Status& status) { return words_of(status).find("lost the lock") != std::string::npos; }
Status put_once(FileSystem& fs, const std::string& path) { return write_file_once(fs, path, "cell"); }

void no_answer(HttpResponse& r) { r = {.status = 0, .failure = "Connection reset by peer"}; }

}  // namespace

TEST_CASE(
    "s3: a lock is refused where the server ignores a condition, or drops what a write says of itself") {
  for (const std::string field : {"If-None-Match", "If-Match"}) {
    FakeS3 http;
    FakeClock clock;
    http.ignored = field;
    const auto fs = s3_file_system({.endpoint = "http://s3"}, http, clock);
    const auto lock = fs->lock("s3://b/run/lock", "process 1");
    REQUIRE_FALSE(lock.ok());
    CHECK(lock.error().code() == ErrorCode::kUnsupported);
    CHECK(lock.error().message().starts_with("s3://b/run/lock: the server http://s3 ignores " + field +
                                             ", so"));
    CHECK(http.objects[kLock].starts_with("free; "));
  }
  FakeS3 http;
  FakeClock clock;
  http.ignored = "x-amz-meta-ostro-write";
  const auto fs = s3_file_system({.endpoint = "http://s3"}, http, clock);
  CHECK(fs->lock("s3://b/run/lock", "process 1")
            .error()
            .message()
            .starts_with("s3://b/run/lock: the server http://s3 keeps no metadata"));
}

TEST_CASE("s3: a lock is refused at once where conditional writes are not implemented") {
  FakeS3 http;
  FakeClock clock;
  const auto fs = s3_file_system({.endpoint = "http://s3"}, http, clock);
  const auto none = [](HttpResponse& r) {
    r = {.status = 501};
    r.body = "<Error><Code>NotImplemented</Code><Message>No.</Message></Error>";
  };
  http.faults = {[](HttpResponse&) {}, none};  // HEAD, PUT
  const auto lock = fs->lock("s3://b/run/lock", "process 1");
  REQUIRE_FALSE(lock.ok());
  CHECK(lock.error().code() == ErrorCode::kUnsupported);
  CHECK(lock.error().message().find("needs a server with conditional writes") != std::string::npos);
  CHECK(clock.sleeps.empty());
}

TEST_CASE("s3: old uploads are aborted on all pages of their listing") {
  FakeS3 http;
  FakeClock clock;
  const auto fs = s3_file_system({.endpoint = "http://s3"}, http, clock);
  http.unfinished = {"run/a", "run/b", "run/c", "run/d", "run/e"};
  http.date = "Mon, 19 Oct 2009 17:50:30 GMT";  // a week later
  const auto lock = fs->lock("s3://b/run/lock", "process 1").value();
  for (const char* key : {"a", "b", "c", "d", "e"})
    CHECK(std::count(http.log.begin(), http.log.end(), std::string("DELETE b/run/") + key) == 1);
}

TEST_CASE("s3: a removal of many objects ends where the lock is lost") {
  Fenced s;
  for (int i = 100; i < 300; ++i) s.http.objects["b/run/step/" + std::to_string(i)] = "x";
  s.at("DELETE b/run/step/150", 1, [&] { s.lose(); });
  CHECK(says_lost(s.fs->remove_all("s3://b/run/step")));
  // Those that were on their way go: 8 are sent at a time, and each of the others' senders finds the lock
  // lost when it asks for its next one.
  const auto found = std::find(s.http.log.begin(), s.http.log.end(), "DELETE b/run/step/150");
  REQUIRE(found != s.http.log.end());
  const auto removes = [](const std::string& line) { return line.starts_with("DELETE "); };
  CHECK(std::count_if(found + 1, s.http.log.end(), removes) <= 7);
  s.lock.reset();
}

TEST_CASE("s3: a request is not repeated when the lock was lost meanwhile") {
  Fenced s;
  s.http.objects["b/run/run.json"] = "theirs";
  const auto refused = [&](HttpResponse& r) {
    r = {.status = 503};
    s.http.objects["b/run/run.json"] = "theirs";
    s.lose();
  };
  s.http.faults = {refused};
  CHECK(says_lost(s.fs->write_file("s3://b/run/run.json", "mine")));
  CHECK(s.count("PUT b/run/run.json") == 1);
  CHECK(s.http.objects["b/run/run.json"] == "theirs");
}

TEST_CASE("s3: a machine that slept or stood still asks whether it has the lock") {
  for (const bool lost : {true, false}) {
    Fenced s;
    if (lost) s.lose();
    s.clock.now = 0;  // its own clock saw nothing of it
    s.clock.stand_still(600'000);
    const Status written = s.fs->write_file("s3://b/run/run.json", "mine");
    CHECK(says_lost(written) == lost);
    CHECK(written.ok() != lost);
  }
}

TEST_CASE("s3: who has lost a lock changes nothing there until he takes it again") {
  Fenced s;
  s.http.objects["b/run/report.html"] = "theirs";
  check_ok(s.fs->write_later("s3://b/run/meters.json", "mine"));
  auto log = s.fs->open_append("s3://b/run/log.txt").value();
  check_ok(log->append("mine"));
  s.lose();
  CHECK(says_lost(s.fs->write_file("s3://b/run/report.html", "mine")));
  CHECK(says_lost(put_once(*s.fs, "s3://b/run/cell")));
  s.lock.reset();
  CHECK(says_lost(s.fs->write_file("s3://b/run/report.html", "mine")));
  CHECK(says_lost(s.fs->remove("s3://b/run/report.html")));
  CHECK(says_lost(log->append("more")));
  log.reset();
  check_ok(s.fs->sync_tree("s3://b/run"));  // nothing is left to be sent
  CHECK(s.http.objects["b/run/report.html"] == "theirs");
  CHECK_FALSE(s.http.objects.contains("b/run/meters.json"));
  CHECK_FALSE(s.http.objects.contains("b/run/log.txt"));
  // A worker that led once puts cells for another leader: where none are.
  check_ok(put_once(*s.fs, "s3://b/run/cell"));
  check_ok(s.fs->write_file("s3://b/other/report.html", "mine"));
  // The other one ended.
  s.http.objects[kLock] = LockText{.free = true, .owner = "process 9 on far"}.text();
  s.lock = s.fs->lock("s3://b/run/lock", "process 1").value();
  check_ok(s.fs->write_file("s3://b/run/report.html", "mine"));
}

TEST_CASE("s3: a renewal that arrives late does not lose the lock to its own process") {
  for (const bool late : {true, false}) {
    Fenced s;
    s.clock.sleep_ms(60'000, {});
    // No answer to a renewal, and it is not carried out yet.
    const std::string text = s.http.objects[kLock], id = s.http.write_ids[kLock];
    const auto undone = [&](HttpResponse& r) {
      no_answer(r);
      s.http.objects[kLock] = text;
      s.http.write_ids[kLock] = id;
    };
    for (int i = 0; i < 10; ++i) s.http.faults.emplace_back(undone);
    CHECK_FALSE(s.fs->write_file("s3://b/run/a", "1").ok());
    s.http.faults.clear();
    std::string first;
    for (const std::string& header : s.http.requests.back().headers)
      if (header.starts_with("x-amz-meta-ostro-write: ")) first = header.substr(24);
    REQUIRE_FALSE(first.empty());
    // It arrives between the question for the object and the next renewal; or it was another's.
    s.at("PUT b/run/lock", 1, [&] {
      s.http.objects[kLock] = text + " ";
      s.http.write_ids[kLock] = late ? first : "another";
    });
    CHECK(says_lost(s.fs->write_file("s3://b/run/a", "1")) != late);
    CHECK(s.http.objects.contains("b/run/a") == late);
  }
}

TEST_CASE("s3: a cut whose answer is lost is known by its id") {
  Fenced s;
  auto file = s.fs->open_append("s3://b/run/chain.jsonl").value();
  check_ok(file->append("one two "));
  check_ok(file->sync());
  // HEAD of the object for its content; then the cut is done ten times over, and no answer comes.
  s.at("PUT b/run/chain.jsonl", 1, [&] {
    for (int i = 0; i < 30; ++i) s.http.faults.emplace_back(no_answer);
  });
  CHECK_FALSE(s.fs->truncate("s3://b/run/chain.jsonl", 4).ok());
  CHECK(s.http.objects["b/run/chain.jsonl"] == "one ");
  s.http.before = nullptr;
  s.http.faults.clear();
  check_ok(file->append("three"));
  check_ok(file->sync());
  CHECK(s.http.objects["b/run/chain.jsonl"] == "one three");
  // Of another process: its text stays, and no later call of this one does anything.
  s.at("PUT b/run/chain.jsonl", 1, [&] {
    s.http.objects["b/run/chain.jsonl"] = "theirs";
    s.http.write_ids["b/run/chain.jsonl"] = "another";
  });
  CHECK(words_of(s.fs->truncate("s3://b/run/chain.jsonl", 4)).find("another process has written it") !=
        std::string::npos);
  CHECK_FALSE(file->append("more").ok());
  CHECK(s.http.objects["b/run/chain.jsonl"] == "theirs");
}

TEST_CASE("s3: a large object is copied in ranges, and may take its time") {
  FakeS3 http;
  FakeClock clock;
  const int64_t mega = 1 << 20;
  const auto fs = s3_file_system({.endpoint = "http://s3", .copy_bytes = 8 * mega}, http, clock);
  std::string content;
  for (int64_t i = 0; static_cast<int64_t>(content.size()) < 21 * mega; ++i) content += std::to_string(i);
  http.objects["b/leaves"] = content;
  auto file = fs->open_append("s3://b/leaves").value();
  check_ok(file->append("end"));
  check_ok(file->sync());
  CHECK(http.objects["b/leaves"] == content + "end");
  int copies = 0;
  for (const HttpRequest& request : http.requests) {
    const bool copies_part = std::any_of(request.headers.begin(), request.headers.end(), [](const auto& h) {
      return h.starts_with("x-amz-copy-source-range: ");
    });
    copies += copies_part ? 1 : 0;
    if (copies_part || (request.method == "POST" && !request.body.empty()))
      CHECK(request.stall_seconds == 600);
  }
  CHECK(copies == 3);
}

TEST_CASE("s3: a file that is rotated loses no line, nor does one that is closed while the server is away") {
  FakeS3 http;
  FakeClock clock;
  const auto fs = s3_file_system({.endpoint = "http://s3", .retry = {.attempts = 1}}, http, clock);
  http.objects["b/else"] = "1";
  RotatedFile file(*fs, "s3://b/run/events.jsonl", 10);
  const auto old = fs->open_append("s3://b/run/events.jsonl").value();  // a thread that sends has it, too
  std::string all;
  for (int i = 0; i < 7; ++i) {
    // The server is away when the file is full: the text is refused, and comes with the next call.
    const bool away = i == 2;
    const auto refused = [](HttpResponse& r) { r = {.status = 500}; };
    if (away)
      for (int k = 0; k < 20; ++k) http.faults.emplace_back(refused);
    const std::string line = fmt::format("line{}\n", i);
    CHECK(file.append(line).ok() != away);
    http.faults.clear();
    if (away) check_ok(file.append(line));
    if (i > 4) all += line;
  }
  CHECK_FALSE(old->append("x").ok());
  check_ok(fs->sync_tree("s3://b/run"));
  CHECK(http.objects["b/run/events.jsonl.1"] + http.objects["b/run/events.jsonl"] == all);
  {
    const auto log = fs->open_append("s3://b/run/log.txt").value();
    check_ok(log->append("last words"));
    http.faults = {[&](HttpResponse& r) {
      r = {.status = 500};
      http.objects.erase("b/run/log.txt");
    }};
  }
  CHECK_FALSE(http.objects.contains("b/run/log.txt"));
  check_ok(fs->sync_tree("s3://b/run"));
  CHECK(http.objects["b/run/log.txt"] == "last words");
}

TEST_CASE("s3: a place without keys is passed over, unless it was named") {
  const auto local = [](const std::string& name, const std::string& text) {
    const std::string path = "/tmp/ostro_s3_keys_" + std::to_string(::getpid()) + name;
    check_ok(local_file_system().write_file(path, text));
    return path;
  };
  struct Container final : HttpClient {
    HttpResponse perform(const HttpRequest& request) override {
      CHECK(request.url == "http://localhost/");
      HttpResponse r{.status = 200};
      r.body = R"({"AccessKeyId":"k","SecretAccessKey":"s","Token":"t"})";
      return r;
    }
  } server;
  const std::string path = local("", "[other]\naws_access_key_id=a\naws_secret_access_key=b\n[third]\n");
  CredentialPlaces places{.file = path, .profile = "default", .url = "http://localhost/"};
  Credentials passed(places, server);
  CHECK(passed.keys().value() == S3Keys{"k", "s", "t"});
  CHECK(passed.place() == "http://localhost");
  places.url.clear();
  CHECK(Credentials(places, server).keys().value() == S3Keys());
  places.profile = "other";
  Credentials found(places, server);
  CHECK(found.keys().value() == S3Keys{"a", "b", ""});
  CHECK(found.place() == "profile other of " + path);
  const auto get = [&](const char* name) -> std::string {
    if (name == std::string("AWS_PROFILE")) return "misspelt";
    return name == std::string("AWS_SHARED_CREDENTIALS_FILE") ? path : "";
  };
  Credentials named(credential_places(get).value(), server);
  CHECK(named.keys().error().message() ==
        path +
            ": no keys for s3:// in the profile misspelt; it has the profiles other, third "
            "(AWS_SHARED_CREDENTIALS_FILE names the file, AWS_PROFILE the profile)");
  check_ok(local_file_system().remove(path));
}
