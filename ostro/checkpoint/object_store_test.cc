// Checkpoints in an object store, where a folder cannot be renamed and the manifest comes last.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/checkpoint/save.h"
#include "ostro/objects/s3/fake_s3_for_test.h"
#include "ostro/objects/s3/s3_file_system.h"

using namespace ostro;
using namespace ostro::checkpoint;

namespace {

constexpr const char* kPlace = "s3://b/run/checkpoints";

struct SavedInStore {
  objects::FakeS3 http;
  objects::FakeClock clock;
  std::unique_ptr<io::FileSystem> fs =
      objects::s3_file_system({.endpoint = "http://s3", .retry = {.attempts = 1}}, http, clock);

  SavedInStore() { http.objects["b/else"] = "a bucket of this server has something in it"; }
  Result<Saved> save(int64_t step, char content, Kind kind = Kind::kTemporary) {
    const TensorSpec spec{"model/w", "bool", {"embed"}, {6}, {2}};
    const std::string bytes(6, content);
    const std::vector<Tensor> tensors = {{spec, std::as_bytes(std::span(bytes)), nullptr}};
    // The head of the chain has the parameters' fingerprint.
    Info info{.step = step,
              .kind = kind,
              .numerics_version = "1",
              .config = "c\n",
              .chain_head = fmt::format("head of {}", static_cast<int>(content))};
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
    for (size_t i = 0; i < good; ++i) cut.http.faults.emplace_back([](objects::HttpResponse&) {});
    // The request is carried out or not; no answer comes, and none to those after it.
    for (int i = 0; i < 100; ++i)
      cut.http.faults.emplace_back([](objects::HttpResponse& r) { r = {.status = 0, .failure = "gone"}; });
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

TEST_CASE("checkpoint: in an object store one that is saved again stays, at every moment") {
  size_t all = 0;
  for (size_t good = 0; good <= all; ++good) {
    SavedInStore s;
    REQUIRE(s.save(8, 1).ok());
    const auto before = s.http.objects;
    for (size_t i = 0; i < good; ++i) s.http.faults.emplace_back([](objects::HttpResponse&) {});
    for (int i = 0; i < 100; ++i)
      s.http.faults.emplace_back([](objects::HttpResponse& r) { r = {.status = 0, .failure = "gone"}; });
    const size_t requests = s.http.log.size();
    const bool saved = s.save(8, 1).ok();
    s.http.faults.clear();
    if (!saved) ++all;
    CHECK(s.steps() == "8 ");
    CHECK(s.http.objects == before);
    CHECK(Checkpoint::open(*s.fs, std::string(kPlace) + "/step-00000008")->verify().ok());
    if (saved) CHECK(s.http.log.size() > requests + 5);
  }
  CHECK(all > 10);
}

TEST_CASE("checkpoint: in an object store a damaged one is replaced, and one of another state, too") {
  for (const bool damaged : {true, false}) {
    SavedInStore s;
    const auto first = s.save(8, 1);
    REQUIRE(first.ok());
    const auto whole = s.http.objects;
    if (damaged) {
      for (auto& [key, content] : s.http.objects)
        if (key.find("model/w/c") != std::string::npos) content.back() ^= 1;
    } else {
      REQUIRE(s.save(8, 0).ok());
    }
    REQUIRE(s.http.objects != whole);
    REQUIRE(s.save(8, 1).ok());
    CHECK(s.http.objects == whole);
  }
}

TEST_CASE("checkpoint: in an object store a damaged one is set aside, its manifest first") {
  SavedInStore s;
  const auto saved = s.save(8, 1);
  REQUIRE(saved.ok());
  std::map<std::string, std::string> below;
  const std::string place = "b/run/checkpoints/step-00000008";
  for (const auto& [key, content] : s.http.objects)
    if (key.starts_with(place)) below[key.substr(place.size())] = content;
  s.http.log.clear();
  CHECK(set_aside(*s.fs, saved->path).value() == std::string(kPlace) + "/damaged-step-00000008");
  const auto first = std::find_if(s.http.log.begin(), s.http.log.end(),
                                  [](const std::string& line) { return line.starts_with("DELETE "); });
  REQUIRE(first != s.http.log.end());
  CHECK(*first == "DELETE " + place + "/manifest.json");
  CHECK(s.steps() == "");
  REQUIRE(remove_leftovers(*s.fs, kPlace).ok());
  for (const auto& [name, content] : below)
    CHECK(s.http.objects["b/run/checkpoints/damaged-step-00000008" + name] == content);
  CHECK(s.http.objects.size() == below.size() + 1);
  REQUIRE(s.save(8, 1).ok());
  CHECK(set_aside(*s.fs, saved->path).value() == std::string(kPlace) + "/damaged-step-00000008.2");
}

// A process that lost the run's lock may have a manifest on its way when the next one begins to save.
TEST_CASE("checkpoint: in an object store a manifest that comes late is replaced by that of the save") {
  SavedInStore s;
  REQUIRE(s.save(8, 1).ok());
  const std::string file = "b/run/checkpoints/step-00000008/manifest.json";
  const std::string manifest = s.http.objects[file];
  for (const bool before : {true, false}) {
    SavedInStore other;
    bool late = false;
    other.http.before = [&](const std::string& line) {
      if (late || !line.starts_with(before ? "PUT b/run/checkpoints/step-00000008/model/w/c" : "PUT " + file))
        return;
      late = true;
      other.http.objects[file] = "another";
    };
    const bool saved = other.save(8, 1).ok();
    REQUIRE(late);
    // Where it comes at the very last moment, the save fails and says so.
    CHECK(saved == before);
    CHECK(other.http.objects[file] == (before ? manifest : "another"));
  }
}
