// The server of a lab's pages: who may ask, for what, and that pages follow the lab.
#include "ostro/lab_commands/site_server.h"

#include <doctest/doctest.h>

#include <chrono>

#include "ostro/io/files/memory_file_system.h"

namespace ostro::cli {
namespace {

// Pages that say how often they were made.
struct MadePages {
  io::MemoryFileSystem fs;
  int made = 0;
  std::string error;

  SiteServer server(const std::string& token, std::chrono::milliseconds least = std::chrono::hours(1)) {
    auto made_server = SiteServer::create(
        fs,
        [this](const std::string& folder) -> Status {
          ++made;
          if (!error.empty()) return invalid_argument(error);
          check_ok(fs.make_dirs(folder + "/data"));
          check_ok(fs.write_file(folder + "/index.html", "first page " + std::to_string(made)));
          check_ok(fs.write_file(folder + "/data/run-1.js", "data"));
          return {};
        },
        token, least,
        [](const std::string& name) -> Result<std::optional<std::string>> {
          if (name == "data/broken.js") return invalid_argument("no such step");
          return name == "data/step-7.js" ? std::optional<std::string>("asked") : std::nullopt;
        });
    REQUIRE_MESSAGE(made_server.ok(), made_server.error().message());
    return std::move(*made_server);
  }
};

http::Request local(const std::string& path) { return {path, {}, {{"host", "localhost:80"}}}; }

bool is_loaded_again(const http::Response& response) {
  for (const auto& [name, value] : response.headers)
    if (name == "Refresh") return true;
  return false;
}

TEST_CASE("the files of the site are served, and nothing else") {
  MadePages pages;
  SiteServer server = pages.server("");
  CHECK(server.first_path() == "/");
  const http::Response first = server.answer(local("/"));
  CHECK(first.body == "first page 1");
  CHECK(first.type == "text/html; charset=utf-8");
  CHECK_FALSE(is_loaded_again(first));                                // its script asks for the next one
  CHECK(server.answer(local("/index.html")).body == "first page 1");  // so soon it is not made again
  CHECK(pages.made == 1);
  const http::Response data = server.answer(local("/data/run-1.js"));
  CHECK(data.body == "data");
  CHECK(data.type == "text/javascript; charset=utf-8");
  CHECK_FALSE(is_loaded_again(data));
  const http::Response asked = server.answer(local("/data/step-7.js"));
  CHECK(asked.body == "asked");
  CHECK(asked.type == "text/javascript; charset=utf-8");
  CHECK(server.answer(local("/data/broken.js")).status == 503);
  for (const char* path :
       {"/data", "/data/", "/other.html", "/../1/index.html", "//index.html", "/data/../index.html"})
    CHECK_MESSAGE(server.answer(local(path)).status == 404, path);
  CHECK(server.answer({"/", {}, {{"host", "evil.example"}}}).status == 403);
}

TEST_CASE("off loopback every path needs the token, in front of it or beside it") {
  MadePages pages;
  SiteServer server = pages.server("secret");
  CHECK(server.first_path() == "/secret/");
  CHECK(server.answer({"/", {}, {}}).status == 401);
  CHECK(server.answer({"/index.html", {}, {{"host", "localhost"}}}).status == 401);
  CHECK(server.answer({"/secre/", {}, {}}).status == 401);
  CHECK(server.answer({"/secret", {}, {}}).status == 401);
  CHECK(pages.made == 0);
  CHECK(server.answer({"/secret/", {}, {}}).body == "first page 1");
  CHECK(server.answer({"/secret/data/run-1.js", {}, {}}).body == "data");
  CHECK(server.answer({"/data/run-1.js", {{"token", "secret"}}, {}}).body == "data");
}

TEST_CASE("a lab that cannot be read is answered with the reason") {
  MadePages broken;
  broken.error = "plan.yaml:3: wrong";
  SiteServer other = broken.server("");
  const http::Response said = other.answer(local("/"));
  CHECK(said.status == 503);
  CHECK(said.body == "plan.yaml:3: wrong\n");
  CHECK(is_loaded_again(said));
  CHECK(other.answer(local("/site.js")).status == 503);  // there was never one
}

TEST_CASE("after an error pages load themselves again, and those that are shown keep their script") {
  MadePages pages;
  SiteServer server = pages.server("", std::chrono::milliseconds(0));
  CHECK(server.answer(local("/")).status == 200);
  pages.error = "small.lab/journal.jsonl: is being written";
  http::Response said = server.answer(local("/"));
  while (said.status == 200) said = server.answer(local("/"));  // until it may be made anew
  CHECK(said.status == 503);
  CHECK(is_loaded_again(said));
  const http::Response data = server.answer(local("/data/run-1.js"));
  CHECK(data.status == 200);
  CHECK(data.body == "data");
}

}  // namespace
}  // namespace ostro::cli
