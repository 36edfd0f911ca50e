// Checkpoints in an object store, where a folder cannot be renamed and the manifest comes last.
#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/checkpoint/save.h"
#include "ostro/io/s3/fake_s3_for_test.h"
#include "ostro/io/s3/s3_file_system.h"

using namespace ostro;
using namespace ostro::checkpoint;

namespace {

constexpr const char* kPlace = "s3://b/run/checkpoints";

struct SavedInStore {
  io::FakeS3 http;
  io::FakeClock clock;
  std::unique_ptr<io::FileSystem> fs =
      io::s3_file_system({.endpoint = "http://s3", .retry = {.attempts = 1}}, http, clock);

  SavedInStore() { http.objects["b/else"] = "a bucket of this server has something in it"; }
  Result<Saved> save(int64_t step, char content, Kind kind = Kind::kTemporary) {
    const TensorSpec spec{"model/w", "bool", {"embed"}, {6}, {2}};
    const std::string bytes(6, content);
    const std::vector<Tensor> tensors = {{spec, std::as_bytes(std::span(bytes)), nullptr}};
    Info info{.step = step, .kind = kind, .numerics_version = "1", .config = "c\n", .chain_head = "h"};
    return checkpoint::save(*fs, kPlace, std::move(info), tensors, {.threads = 1});
  }
  std::string steps() {
    std::string out;
    const std::vector<Entry> entries = list_checkpoints(*fs, kPlace).value();
    for (const Entry& entry : entries) out += fmt::format("{} ", entry.step);
    return out;
  }
  // Names of objects that are not below one of these checkpoints.
  std::string others() {
    std::string out;
    for (const auto& [key, content] : http.objects) {
      const auto under = [&](int64_t step) {
        return key.starts_with(fmt::format("b/run/checkpoints/{}/", step_directory(step)));
      };
      if (key != "b/else" && !under(4) && !under(8)) out += key + " ";
    }
    return out;
  }
};

}  // namespace

TEST_CASE("checkpoint: in an object store its objects are put where they stay, the manifest last") {
  SavedInStore s;
  const auto saved = s.save(4, 1);
  CHECK_MESSAGE(saved.ok(), (saved.ok() ? "" : saved.error().message()));
  REQUIRE(s.save(8, 0).ok());
  CHECK(s.steps() == "4 8 ");
  CHECK(s.others() == "");
  std::vector<std::string> puts;
  for (const std::string& line : s.http.log)
    if (line.starts_with("PUT ")) puts.push_back(line);
  CHECK(puts.back() == "PUT b/run/checkpoints/step-00000008/manifest.json");
  // Without its manifest it is none, and the next save removes what there is.
  s.http.objects.erase("b/run/checkpoints/step-00000008/manifest.json");
  CHECK(s.steps() == "4 ");
  REQUIRE(remove_leftovers(*s.fs, kPlace).ok());
  CHECK(std::none_of(s.http.objects.begin(), s.http.objects.end(),
                     [](const auto& object) { return object.first.find("00000008") != std::string::npos; }));
}

TEST_CASE("checkpoint: in an object store one takes the place of another, and a permanent one stays that") {
  SavedInStore s;
  const auto first = s.save(4, 1, Kind::kPermanent);
  REQUIRE(first.ok());
  REQUIRE(s.save(4, 1).value().name == first->name);
  CHECK(read_manifest(*s.fs, first->path)->info.kind == Kind::kPermanent);
  REQUIRE(s.save(4, 0).value().name != first->name);
  CHECK(read_manifest(*s.fs, first->path)->info.kind == Kind::kTemporary);
  CHECK(s.others() == "");
  // The one before is gone first, and a save that is cut off leaves none.
  const size_t requests = s.http.log.size();
  REQUIRE(s.save(4, 1).ok());
  const size_t all = s.http.log.size() - requests;
  for (size_t good = 0; good < all; ++good) {
    SavedInStore cut;
    REQUIRE(cut.save(4, 0, Kind::kPermanent).ok());
    REQUIRE(cut.save(8, 0).ok());
    for (size_t i = 0; i < good; ++i) cut.http.faults.emplace_back([](io::HttpResponse&) {});
    // The request is carried out or not; no answer comes, and none to those after it.
    for (int i = 0; i < 100; ++i)
      cut.http.faults.emplace_back([](io::HttpResponse& r) { r = {.status = 0, .failure = "gone"}; });
    (void)cut.save(8, 1);
    cut.http.faults.clear();
    const std::string steps = cut.steps();
    CHECK((steps == "4 " || steps == "4 8 "));
    REQUIRE(remove_leftovers(*cut.fs, kPlace).ok());
    REQUIRE(cut.save(8, 1).ok());
    CHECK(cut.steps() == "4 8 ");
    CHECK(cut.others() == "");
    CHECK(read_manifest(*cut.fs, first->path)->info.kind == Kind::kPermanent);
  }
}
