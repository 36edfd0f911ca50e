#include <doctest/doctest.h>

#include "ostro/io/files/atomic_file.h"
#include "ostro/objects/s3/fake_s3_for_test.h"
#include "ostro/objects/s3/lock_text.h"
#include "ostro/objects/s3/s3_file_system.h"
#include "ostro/objects/web/credentials.h"
#include "ostro/objects/web/profile_file.h"

using namespace ostro;
using namespace ostro::io;
using namespace ostro::objects;

namespace {

// Two processes on two machines, and one server.
struct Store {
  FakeS3 http;
  FakeClock clock;
  std::unique_ptr<FileSystem> fs = open(), other = open();
  std::unique_ptr<FileSystem> open() { return s3_file_system({.endpoint = "http://s3"}, http, clock); }
  std::string text(const std::string& key) {
    return http.objects.contains(key) ? http.objects[key] : "(none)";
  }
  size_t count(const std::string& request) {
    return static_cast<size_t>(std::count(http.log.begin(), http.log.end(), request));
  }
};

void lost(HttpResponse& r) { r = {.status = 0, .failure = "Connection reset by peer"}; }
void as_it_is(HttpResponse&) {}

std::string message(const Status& status) { return status.ok() ? "" : status.error().message(); }

// The text of a lock that a process of another machine holds.
std::string foreign_lock() {
  return LockText{.owner = "process 9 on far", .lease = 30, .term = 3, .process = "boot/pid/9/1"}.text();
}

constexpr int64_t kMega = 1 << 20;

}  // namespace

TEST_CASE("s3: a file appears as a whole when it is closed") {
  Store s;
  s.http.objects["b/f"] = "old";
  {
    auto file = s.fs->create("s3://b/f").value();
    check_ok(file->append("new"));
    CHECK(s.text("b/f") == "old");
  }
  CHECK(s.text("b/f") == "old");  // it was not finished
  check_ok(s.fs->write_file("s3://b/f", "new"));
  CHECK(s.text("b/f") == "new");
  check_ok(write_file_atomically(*s.fs, "s3://b/g", "at once"));
  CHECK(s.text("b/g") == "at once");
  CHECK(s.count("PUT b/g") == 1);
  CHECK_FALSE(write_file_atomically(*s.fs, "s3://b/g", [](WritableFile& file) -> Status {
                RETURN_IF_ERROR(file.append("half"));
                return io_error("no");
              }).ok());
  CHECK(s.text("b/g") == "at once");
  check_ok(s.fs->rename("s3://b/g", "s3://b/h"));
  CHECK(s.text("b/g") == "(none)");
  CHECK(s.text("b/h") == "at once");
  s.http.objects["b/d/x"] = s.http.objects["b/d/e/y"] = s.http.objects["b/dd"] = "1";
  CHECK(s.fs->rename("s3://b/d", "s3://b/z").error().code() == ErrorCode::kUnsupported);
  check_ok(s.fs->remove_all("s3://b/d"));
  CHECK(s.text("b/d/e/y") == "(none)");
  CHECK(s.text("b/dd") == "1");
}

TEST_CASE("s3: large files go in parts, and nothing is left of one that fails") {
  Store s;
  const std::string large(static_cast<size_t>(20 * kMega), 'x'), huge(static_cast<size_t>(70 * kMega), 'y');
  check_ok(s.fs->write_file("s3://b/large", large));
  CHECK(s.text("b/large") == large);
  check_ok(s.fs->write_file("s3://b/huge", huge));
  CHECK(s.text("b/huge") == huge);
  {
    auto file = s.fs->create("s3://b/cut").value();
    check_ok(file->append(huge));
    CHECK(s.http.uploads.contains("b/cut"));
  }
  CHECK(s.http.uploads.empty());
  for (int i = 0; i < 40; ++i) s.http.faults.push_back([](HttpResponse& r) { r = {.status = 403}; });
  s.http.faults[0] = as_it_is;
  CHECK_FALSE(s.fs->write_file("s3://b/refused", large).ok());
  s.http.faults.clear();
  CHECK(s.text("b/refused") == "(none)");
}

TEST_CASE("s3: appends are kept until they are synced, and read by who wrote them") {
  Store s;
  auto file = s.fs->open_append("s3://b/log").value();
  check_ok(file->append("one "));
  CHECK(s.text("b/log") == "(none)");
  CHECK(s.fs->read_file("s3://b/log").value() == "one ");
  check_ok(file->append("two "));
  check_ok(file->sync());
  CHECK(s.text("b/log") == "one two ");
  check_ok(s.fs->truncate("s3://b/log", 4));
  check_ok(file->append("three"));
  file.reset();
  CHECK(s.text("b/log") == "one three");
  // Once it is large, the server copies what it has: only new bytes are sent.
  s.http.objects["b/big"] = std::string(static_cast<size_t>(9 * kMega), 'a');
  file = s.fs->open_append("s3://b/big").value();
  check_ok(file->append("end"));
  s.http.requests.clear();
  check_ok(file->sync());
  CHECK(s.text("b/big").size() == 9 * kMega + 3);
  CHECK(s.text("b/big").ends_with("aend"));
  size_t sent = 0;
  for (const HttpRequest& request : s.http.requests) sent += request.body.size();
  CHECK(sent < 1000);
}

TEST_CASE("s3: of two processes that append to one file the second fails, and goes on failing") {
  Store s;
  s.http.objects["b/log"] = "begin ";
  auto mine = s.fs->open_append("s3://b/log").value(), theirs = s.other->open_append("s3://b/log").value();
  check_ok(mine->append("mine"));
  check_ok(theirs->append("theirs"));
  check_ok(mine->sync());
  CHECK(message(theirs->sync()) == "s3://b/log: another process has written it since it was read");
  CHECK_FALSE(theirs->append("more").ok());
  CHECK_FALSE(theirs->close().ok());
  check_ok(mine->append(" again"));
  check_ok(mine->sync());
  CHECK(s.text("b/log") == "begin mine again");
  theirs.reset();
  CHECK(s.text("b/log") == "begin mine again");
}

TEST_CASE("s3: a write whose answer is lost is known by its id") {
  Store s;
  auto file = s.fs->open_append("s3://b/log").value();
  check_ok(file->append("one"));
  s.http.faults = {lost};
  check_ok(file->sync());  // the second time it is there already
  check_ok(file->append(" two"));
  // All answers are lost, the first request was carried out; and then the server answers again.
  for (int i = 0; i < 10; ++i) s.http.faults.emplace_back(lost);
  CHECK_FALSE(file->sync().ok());
  s.http.faults.clear();
  check_ok(file->append(" three"));
  check_ok(file->sync());
  CHECK(s.text("b/log") == "one two three");
  // Written once: the same bytes of another process are fine, others are not.
  const auto once = [](FileSystem& fs, std::string_view text) -> Status {
    ASSIGN_OR_RETURN(auto made, fs.create_once("s3://b/cell"));
    RETURN_IF_ERROR(made->append(text));
    return made->close();
  };
  s.http.faults = {lost};
  check_ok(once(*s.fs, "cell"));
  check_ok(once(*s.other, "cell"));
  CHECK(once(*s.other, "Cell").error().code() == ErrorCode::kIo);
  CHECK(s.text("b/cell") == "cell");
}

TEST_CASE("s3: a lock is free, held, silent for its lease, or of a process that is gone") {
  Store s;
  auto lock = s.fs->lock("s3://b/run/lock", "process 1 on here").value();
  CHECK(s.other->lock("s3://b/run/lock", "me").error().message() ==
        "s3://b/run/lock: locked by process 1 on here");
  CHECK(s.other->lock("s3://b/run/lock", "me").error().code() == ErrorCode::kBusy);
  lock.reset();
  CHECK(s.text("b/run/lock").starts_with("free; last held by process 1 on here\n"));
  lock = s.other->lock("s3://b/run/lock", "process 2").value();
  CHECK(parse_lock_text(s.text("b/run/lock")).term == 2);
  lock.reset();
  // Of this machine, and gone.
  LockText gone{.owner = "process 3", .process = this_process()};
  gone.process += "1";
  s.http.objects["b/run/lock"] = gone.text();
  CHECK(state_of_process(this_process()) == HolderState::kAlive);
  CHECK(state_of_process(gone.process) == HolderState::kGone);
  lock = s.fs->lock("s3://b/run/lock", "process 4").value();
  lock.reset();
  // Of another machine: silent for the lease, as this one sees it, or as the server says.
  s.http.objects["b/run/lock"] = foreign_lock();
  const int64_t begin = s.clock.now_ms();
  lock = s.fs->lock("s3://b/run/lock", "process 5").value();
  CHECK(s.clock.now_ms() - begin >= 30'000);
  lock.reset();
  s.http.objects["b/run/lock"] = foreign_lock();
  s.http.date = "Mon, 12 Oct 2009 17:51:30 GMT";  // a minute after its last change
  const int64_t again = s.clock.now_ms();
  lock = s.fs->lock("s3://b/run/lock", "process 6").value();
  CHECK(s.clock.now_ms() == again);
  lock.reset();
  // It gives a sign of life while it is waited for.
  s.http.date.clear();
  s.http.objects["b/run/lock"] = foreign_lock();
  int looks = 0;
  s.http.faults.clear();
  for (int i = 0; i < 6; ++i)
    s.http.faults.emplace_back([&](HttpResponse&) {
      if (++looks == 4) s.http.objects["b/run/lock"] += " ";
    });
  CHECK(s.fs->lock("s3://b/run/lock", "process 7").error().message() ==
        "s3://b/run/lock: locked by process 9 on far");
}

TEST_CASE("s3: a process that lost the lock of a folder writes nothing more there") {
  Store s;
  const auto lock = s.fs->lock("s3://b/run/lock", "process 1").value();
  check_ok(s.fs->write_file("s3://b/run/a", "1"));
  // Long ago renewed, and still its own: it goes on.
  s.clock.sleep_ms(60'000, {});
  check_ok(s.fs->write_file("s3://b/run/a", "2"));
  s.clock.sleep_ms(60'000, {});
  s.http.objects["b/run/lock"] = foreign_lock();
  const std::string said = message(s.fs->write_file("s3://b/run/a", "3"));
  CHECK(said.starts_with("s3://b/run/lock: this process lost the lock to process 9 on far"));
  CHECK(message(s.fs->remove("s3://b/run/a")) == said);
  CHECK(message(s.fs->open_append("s3://b/run/b").value()->sync()) == said);
  CHECK(s.text("b/run/a") == "2");
  check_ok(s.fs->write_file("s3://b/elsewhere", "3"));
}

TEST_CASE("s3: keys that have expired are read again, once") {
  const auto get = [](const std::map<std::string, std::string>& values) {
    return [&values](const char* name) {
      const auto found = values.find(name);
      return found == values.end() ? "" : found->second;
    };
  };
  const std::map<std::string, std::string> container = {
      {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost/"},
      {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "t"}};
  struct Server final : HttpClient {
    int given = 0, refused = 0, good_from = 2;
    HttpResponse perform(const HttpRequest& request) override {
      HttpResponse r{.status = 200};
      if (request.url == "http://localhost/") {
        CHECK(request.headers == std::vector<std::string>{"Authorization: t"});
        r.body = fmt::format(R"({{"AccessKeyId":"k{0}","SecretAccessKey":"s{0}","Token":"t{0}"}})", ++given);
        return r;
      }
      if (request.access_key >= fmt::format("k{}", good_from)) return r;
      ++refused;
      r = {.status = 400};
      r.body = "<Error><Code>ExpiredToken</Code><Message>Old.</Message></Error>";
      return r;
    }
  } server;
  FakeClock clock;
  S3Options options{.endpoint = "http://s3"};
  options.credentials = credential_places(get(container)).value();
  {
    S3Client client(options, server, clock);
    check_ok(client.put({"b", "k"}, {}, {}, "w").ok() ? Status() : Status(io_error("no")));
    CHECK(server.refused == 1);
    server.good_from = 9;
    CHECK(client.put({"b", "k"}, {}, {}, "w")
              .error()
              .message()
              .ends_with("the keys in http://localhost have expired or are not valid: put new ones there"));
    CHECK(server.refused == 3);
  }
  const std::string file =
      "[other]\naws_access_key_id = no\n[me]\n# mine\naws_access_key_id=id\n"
      "aws_secret_access_key = a=b\naws_session_token = t\n";
  CHECK(parse_credentials_file(file, "f", "me").value() == S3Keys{"id", "a=b", "t"});
  CHECK(parse_credentials_file(file, "f", "none").value() == S3Keys());
  CHECK(parse_credentials_file(file, "f", "other").error().message() ==
        "f: the profile other has aws_access_key_id, and no aws_secret_access_key");
  CHECK(parse_container_keys(
            R"({"AccessKeyId":"a","SecretAccessKey":"b","Expiration":"1970-01-02T00:00:00Z"})", "u")
            .value()
            .expires == 86400);
  CHECK_FALSE(parse_container_keys("{}", "u").ok());
}
