#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>

#include "ostro/io/files/path.h"
#include "ostro/io/read/line_reader.h"
#include "ostro/io/read/read_ahead.h"
#include "ostro/objects/s3/fake_s3_for_test.h"
#include "ostro/objects/s3/routing_file_system.h"
#include "ostro/objects/s3/s3_file_system.h"
#include "ostro/objects/s3/s3_xml.h"

using namespace ostro;
using namespace ostro::io;
using namespace ostro::objects;

namespace {

struct Server {
  FakeS3 http;
  FakeClock clock;
  std::unique_ptr<FileSystem> fs = s3_file_system({.endpoint = "http://s3"}, http, clock);
};

std::string pattern_text(size_t size) {
  std::string text(size, ' ');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + (i * i + i / 7) % 26);
  return text;
}

std::string read_range(RandomAccessFile& file, int64_t offset, size_t size) {
  std::string out(size, '?');
  const Status status = file.read(offset, std::as_writable_bytes(std::span(out)));
  return status.ok() ? out : "error: " + status.error().message();
}

void status_503(HttpResponse& r) {
  r = {.status = 503};
  r.body = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
}

}  // namespace

TEST_CASE("s3: options from the environment") {
  std::map<std::string, std::string> values;
  const auto get = [&values](const char* name) { return values[name]; };
  CHECK(s3_options(get)->region == "us-east-1");
  CHECK(s3_options(get)->endpoint.empty());
  values = {{"AWS_ACCESS_KEY_ID", "id"},
            {"AWS_SECRET_ACCESS_KEY", "secret"},
            {"AWS_SESSION_TOKEN", "token"},
            {"AWS_DEFAULT_REGION", "eu-west-1"},
            {"AWS_ENDPOINT_URL", "http://localhost:9000/"},
            {"AWS_MAX_ATTEMPTS", "3"}};
  CHECK(s3_options(get)->credentials.given.access_key == "id");
  CHECK(s3_options(get)->credentials.given.session_token == "token");
  CHECK(s3_options(get)->region == "eu-west-1");
  CHECK(s3_options(get)->endpoint == "http://localhost:9000");
  CHECK(s3_options(get)->retry.attempts == 3);
  values["AWS_REGION"] = "eu-north-1";
  values["AWS_ENDPOINT_URL_S3"] = "https://store";
  CHECK(s3_options(get)->region == "eu-north-1");
  CHECK(s3_options(get)->endpoint == "https://store");
  values["AWS_MAX_ATTEMPTS"] = "many";
  CHECK(s3_options(get).error().message() == "AWS_MAX_ATTEMPTS: \"many\" is not a number from 1 to 1000");
  values.erase("AWS_MAX_ATTEMPTS");
  values["AWS_ENDPOINT_URL_S3"] = "store";
  CHECK(s3_options(get).error().message().starts_with("AWS_ENDPOINT_URL: \"store\""));
  values.erase("AWS_ENDPOINT_URL_S3");
  values.erase("AWS_SECRET_ACCESS_KEY");
  CHECK(s3_options(get).error().message().starts_with("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY"));
}

TEST_CASE("s3: addresses of objects") {
  FakeClock clock;
  const auto url = [&clock](S3Options options, const std::string& path) {
    struct Recorder final : HttpClient {
      std::string url;
      HttpResponse perform(const HttpRequest& request) override {
        url = request.url;
        return {.status = 404};
      }
    } http;
    S3Client client(std::move(options), http, clock);
    CHECK(client.head(*parse_s3_path(path)).error().code() == ErrorCode::kNotFound);
    return http.url;
  };
  CHECK(url({}, "s3://b/k/l.txt") == "https://b.s3.us-east-1.amazonaws.com/k/l.txt");
  CHECK(url({.region = "eu-west-1"}, "s3://my.b/k") == "https://s3.eu-west-1.amazonaws.com/my.b/k");
  CHECK(url({.region = "cn-north-1"}, "s3://b/k") == "https://b.s3.cn-north-1.amazonaws.com.cn/k");
  CHECK(url({.endpoint = "http://h:9"}, "s3://b/a b+c=d%/\xc3\xa9~") ==
        "http://h:9/b/a%20b%2Bc%3Dd%25/%C3%A9~");
  CHECK_FALSE(parse_s3_path("s3:///k").ok());
  CHECK(parse_s3_path("s3://b")->url() == "s3://b");
  CHECK(parse_s3_path("s3://b//k/")->url() == "s3://b/k");
}

TEST_CASE("s3: what may pass is tried again with growing, reproducible pauses") {
  const std::string content = pattern_text(1000);
  const auto read = [&content](std::deque<std::function<void(HttpResponse&)>> faults,
                               RetryPolicy policy = {}) {
    FakeS3 http;
    FakeClock clock;
    http.objects["b/k"] = content;
    S3Client client({.endpoint = "http://s3", .retry = policy}, http, clock);
    const auto object = client.head({"b", "k"});
    REQUIRE(object.ok());
    http.faults = std::move(faults);
    std::string out(100, '?');
    const Status status = client.get({"b", "k"}, 50, std::as_writable_bytes(std::span(out)), *object);
    return std::tuple(status.ok() ? out : status.error().message(), clock.sleeps, http.log.size() - 1);
  };
  const std::string good = content.substr(50, 100);
  const std::vector<std::function<void(HttpResponse&)>> passing = {
      status_503,
      [](HttpResponse& r) { r = {.status = 500}; },
      [](HttpResponse& r) { r = {.status = 429}; },
      [](HttpResponse& r) { r = {.status = 0, .failure = "Connection reset by peer"}; },
      [](HttpResponse& r) { r.body.pop_back(); },
      [](HttpResponse& r) { r.body += "more"; },
      [](HttpResponse& r) {
        r.body.resize(10), r.failure = "transfer closed with 90 bytes remaining to read";
      },
      [](HttpResponse& r) { r.headers["content-range"] = "bytes 51-150/1000"; },
      [](HttpResponse& r) { r.headers["content-range"] = "bytes 50-149/1001"; },
      [](HttpResponse& r) { r.status = 200; },
      [](HttpResponse& r) {
        r = {.status = 400};
        r.body = "<Error><Code>RequestTimeout</Code><Message>idle</Message></Error>";
      }};
  for (size_t i = 0; i < passing.size(); ++i) {
    CAPTURE(i);
    const auto [text, sleeps, requests] = read({passing[i], passing[i], passing[i]});
    CHECK(text == good);
    CHECK(requests == 4);
    REQUIRE(sleeps.size() == 3);
    for (size_t n = 0; n < 3; ++n) {
      CHECK(sleeps[n] >= (50 << n));
      CHECK(sleeps[n] < (100 << n));
    }
    CHECK(std::get<1>(read({passing[i], passing[i], passing[i]})) == sleeps);
  }
  // Bounds: attempts, then time.
  CHECK(
      std::get<0>(read({status_503, status_503, status_503}, {.attempts = 3})) ==
      "s3://b/k: bytes [50, 150): status 503 (SlowDown: Please reduce your request rate.); given up after 3 "
      "attempts in 0.2 s");
  const std::deque<std::function<void(HttpResponse&)>> always(100, status_503);
  const auto [late, sleeps, requests] = read(always, {.attempts = 100, .max_total_ms = 10'000});
  CHECK(late.find("given up after") != std::string::npos);
  int64_t slept = 0;
  for (const int64_t ms : sleeps) slept += ms;
  CHECK(slept <= 10'000);
  CHECK(requests < 12);
  // What does not pass is an error at once.
  const auto refuse = [](int status) {
    return [status](HttpResponse& r) {
      r = {.status = status};
      r.body = "<Error><Code>AccessDenied</Code><Message>No.</Message></Error>";
    };
  };
  for (const int status : {400, 401, 403, 404, 412, 416}) {
    const auto [text, none, once] = read({refuse(status)});
    CHECK(none.empty());
    CHECK(once == 1);
    CHECK(text.starts_with("s3://b/k: bytes [50, 150): "));
    CHECK(text.find(status == 412
                        ? "changed while it was read"
                        : fmt::format("status {} (AccessDenied: No.)", status)) != std::string::npos);
    if (status == 403) CHECK(text.find("AWS_ACCESS_KEY_ID") != std::string::npos);
  }
}

TEST_CASE("s3: listings in pages, folders, globs") {
  Server server;
  for (const char* key : {"b/web/0.jsonl", "b/web/1.jsonl", "b/web/2.jsonl", "b/web/3.jsonl",
                          "b/web/deep/er/4.jsonl", "b/web/deep/5.txt", "b/web/", "b/web2/6.jsonl",
                          "b/web/.hidden/7.jsonl", "b/top.txt", "b/web/a&amp;b"})
    server.http.objects[key] = key;
  const auto names = [&server](const std::string& path) {
    std::string out;
    const auto entries = server.fs->list(path);
    if (!entries.ok()) return entries.error().message();
    for (const DirEntry& entry : *entries) out += entry.name + (entry.is_directory ? "/ " : " ");
    return out;
  };
  CHECK(names("s3://b/web") == ".hidden/ 0.jsonl 1.jsonl 2.jsonl 3.jsonl a&b deep/ ");
  CHECK(names("s3://b") == "top.txt web/ web2/ ");
  CHECK(names("s3://b/we") == "s3://b/we: no such directory");
  using Paths = std::vector<std::string>;
  CHECK(*server.fs->glob("s3://b/**/*.jsonl") == Paths{"s3://b/web/0.jsonl", "s3://b/web/1.jsonl",
                                                       "s3://b/web/2.jsonl", "s3://b/web/3.jsonl",
                                                       "s3://b/web/deep/er/4.jsonl", "s3://b/web2/6.jsonl"});
  CHECK(*server.fs->glob("s3://b/web/[01].jsonl") == Paths{"s3://b/web/0.jsonl", "s3://b/web/1.jsonl"});
  CHECK(*server.fs->glob("s3://b/top.txt") == Paths{"s3://b/top.txt"});
  CHECK(server.fs->glob("s3://b/none/*")->empty());
  CHECK_FALSE(server.fs->glob("s3://*/x").ok());
  CHECK(server.fs->glob("s3://zzz/*").error().message() ==
        "s3://zzz/: listing: status 404 (NoSuchBucket: No.)");
  // Listings and requests for single objects say the same of a file; another content says another thing.
  const auto found = *server.fs->find_files("s3://b/web/0*");
  REQUIRE(found.size() == 1);
  CHECK(found[0].info == *server.fs->stat("s3://b/web/0.jsonl"));
  server.http.objects["b/web/0.jsonl"] = "B/web/0.jsonl";
  CHECK(found[0].info.size == server.fs->stat("s3://b/web/0.jsonl")->size);
  CHECK_FALSE(found[0].info == *server.fs->stat("s3://b/web/0.jsonl"));
  CHECK(server.fs->stat("s3://b/web")->is_directory);
  CHECK(server.fs->stat("s3://b")->is_directory);
  CHECK(server.fs->stat("s3://b/we").error().code() == ErrorCode::kNotFound);
  // Half a page, and a server that turns in circles.
  server.http.faults = {[](HttpResponse& r) { r.body.resize(r.body.size() / 2); }};
  CHECK(names("s3://b") == "top.txt web/ web2/ ");
  const auto circle = [](HttpResponse& r) {
    r.body =
        "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>"
        "</ListBucketResult>";
  };
  server.http.faults = {circle, circle};
  CHECK(names("s3://b") == "s3://b/: listing: the server gives the continuation token \"x\" again");
}

TEST_CASE("s3: files read in order are read ahead, other reads are one request each") {
  Server server;
  std::string lines;
  for (int i = 0; i < 100'000; ++i)
    lines += fmt::format("line {} {}\n", i, std::string(static_cast<size_t>(i % 37), 'x'));
  server.http.objects["b/lines"] = lines;
  for (int i = 0; i < 5; ++i) server.http.faults.push_back(i % 2 == 0 ? status_503 : [](HttpResponse&) {});
  auto reader = LineReader::open(*server.fs, "s3://b/lines");
  REQUIRE(reader.ok());
  std::string all;
  std::string_view line;
  while (*reader->next(line)) all.append(line).append("\n");
  CHECK(all == lines);
  const size_t requests = server.http.log.size();
  CHECK(requests <= 3 + 2 + 6);  // HEAD, blocks of 256 KiB, 512 KiB, 1 MiB, ..., and what was tried again

  auto opened = server.fs->open("s3://b/lines");
  REQUIRE(opened.ok());
  auto file = std::move(*opened);
  server.http.log.clear();
  CHECK(read_range(*file, 1'000'000, 10) == lines.substr(1'000'000, 10));
  CHECK(read_range(*file, 500'000, 10) == lines.substr(500'000, 10));
  CHECK(server.http.log ==
        std::vector<std::string>{"GET b/lines bytes=1000000-1000009", "GET b/lines bytes=500000-500009"});
  CHECK(read_range(*file, static_cast<int64_t>(lines.size()) - 1, 2).find("ends at byte") !=
        std::string::npos);
  CHECK(read_range(*file, static_cast<int64_t>(lines.size()), 0).empty());
  server.http.objects["b/lines"][0] = 'L';
  CHECK(read_range(*file, 7, 3) == "error: s3://b/lines: bytes [7, 10): changed while it was read");
  CHECK(server.fs->open("s3://b/none").error().code() == ErrorCode::kNotFound);
  server.http.objects["b/empty"] = "";
  CHECK(server.fs->read_file("s3://b/empty")->empty());
}

TEST_CASE("read ahead: any pattern of reads gives the bytes, in bounded memory") {
  const std::string content = pattern_text(10'000);
  std::atomic<int64_t> under_way = 0, most = 0;
  const ReadAheadOptions options{.first_block = 16, .max_block = 128, .blocks = 3};
  const auto fetch = [&](int64_t offset, std::span<std::byte> out, std::stop_token) -> Status {
    const int64_t now = under_way += static_cast<int64_t>(out.size());
    for (int64_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::copy_n(reinterpret_cast<const std::byte*>(content.data()) + offset, out.size(), out.begin());
    under_way -= static_cast<int64_t>(out.size());
    return {};
  };
  ReadAhead ahead(10'000, fetch, options);
  const auto check = [&](int64_t offset, size_t size) {
    std::string out(size, '?');
    check_ok(ahead.read(offset, std::as_writable_bytes(std::span(out))));
    CHECK(out == content.substr(static_cast<size_t>(offset), size));
  };
  for (int64_t at = 0; at < 10'000; at += 40) check(at, 40);
  uint64_t state = 1;
  for (int i = 0; i < 2000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto offset = static_cast<int64_t>((state >> 33) % 9'700);
    check(offset, (state >> 50) % 300);
    if (i % 5 == 0) check(offset, 20), check(offset + 20, 30), check(offset + 50, 250);
  }
  CHECK(most <= 4 * 128);
  // An error comes to the reader whose bytes they are, and the next read tries anew.
  bool broken = true;
  ReadAhead failing(
      1000,
      [&](int64_t offset, std::span<std::byte> out, std::stop_token) -> Status {
        if (broken && offset >= 64) return io_error("broken");
        std::fill(out.begin(), out.end(), std::byte{1});
        return {};
      },
      options);
  std::array<std::byte, 8> out;
  for (int64_t at = 0; at < 48; at += 8) check_ok(failing.read(at, out));
  Status last;
  for (int64_t at = 48; at < 128 && last.ok(); at += 8) last = failing.read(at, out);
  CHECK_FALSE(last.ok());
  broken = false;
  check_ok(failing.read(64, out));
}

TEST_CASE("read ahead: many objects share one budget, and what was read is given back") {
  const std::string content = pattern_text(10'000);
  const auto fetch = [&](int64_t offset, std::span<std::byte> out, std::stop_token) -> Status {
    std::copy_n(reinterpret_cast<const std::byte*>(content.data()) + offset, out.size(), out.begin());
    return {};
  };
  const auto budget = std::make_shared<ReadAheadBudget>(500);
  const ReadAheadOptions options{.first_block = 16, .max_block = 128, .blocks = 3, .budget = budget};
  std::deque<ReadAhead> objects;
  for (int i = 0; i < 20; ++i) objects.emplace_back(10'000, fetch, options);
  int64_t least = budget->left();
  for (int64_t at = 0; at < 10'000; at += 40)
    for (ReadAhead& object : objects) {
      std::string out(40, '?');
      check_ok(object.read(at, std::as_writable_bytes(std::span(out))));
      CHECK(out == content.substr(static_cast<size_t>(at), 40));
      least = std::min(least, budget->left());
    }
  CHECK(least < 128);            // used ...
  CHECK(least > -20 * 16);       // ... and exceeded only by the first_block of those that wait
  CHECK(budget->left() == 500);  // all were read to their ends
}

TEST_CASE("paths with a scheme, and where they lead") {
  CHECK(path_scheme("s3://b/k") == "s3://");
  CHECK(path_scheme("/a/s3://b").empty());
  CHECK(path_scheme("a/b").empty());
  CHECK(clean_path("s3://b//k/./l/") == "s3://b/k/l");
  CHECK(clean_path("/a//b/") == "/a/b");
  CHECK(join_path("dir", "s3://b/k") == "s3://b/k");
  CHECK(join_path("s3://b", "k") == "s3://b/k");
  CHECK(parent_path("s3://b/k") == "s3://b");
  CHECK(parent_path("s3://b") == "s3://");
  const auto refused = [](const std::string& path) {
    return default_file_system().open(path).error().message();
  };
  CHECK(
      refused("gs://b/k").find("gs://b/k: gs:// is read through its S3 interface: write s3://b/k, and set") ==
      0);
  CHECK(refused("hf://a/b").find("hf download") != std::string::npos);
  CHECK(refused("https://x.org/a").find("https:// is not supported; use a local path or s3://") !=
        std::string::npos);
  CHECK(default_file_system().stat("/")->is_directory);
}
