#include "ostro/base/profile.h"

#include <doctest/doctest.h>

#include <map>
#include <thread>

using namespace ostro;

namespace {

SpanLabelPtr label(const char* name) {
  auto l = std::make_shared<SpanLabel>();
  l->name = name;
  return l;
}

std::map<std::string, std::vector<SpanRecord>> by_thread(std::vector<ProfileTrack> tracks) {
  std::map<std::string, std::vector<SpanRecord>> out;
  for (ProfileTrack& t : tracks) {
    CHECK_MESSAGE(out.count(t.thread) == 0, t.thread);
    out[t.thread] = std::move(t.spans);
  }
  return out;
}

}  // namespace

TEST_CASE("profile: nothing is collected while nobody profiles") {
  const SpanLabelPtr early = label("early"), late = label("late");
  {
    const Span span(&early);
    REQUIRE(start_profile());
    CHECK_FALSE(start_profile());
  }
  std::vector<ProfileTrack> none;
  {
    const Span span(&late);
    none = stop_profile();
  }
  // Neither began and ended inside.
  CHECK(none.empty());
  CHECK(stop_profile().empty());
  CHECK_FALSE(profiling());
}

TEST_CASE("profile: phases fill their span without a gap, whatever is between them") {
  const SpanLabelPtr inner = label("inner");
  REQUIRE(start_profile());
  {
    const PhasedSpan step("step");
    phase("a");
    {
      const Span span(&inner);
    }
    phase("b", 3);
    {
      const Span span(&inner);
    }
    phase("a");
  }
  phase("outside");
  {
    const PhasedSpan unnamed("");
  }
  const std::vector<ProfileTrack> tracks = stop_profile();
  REQUIRE(tracks.size() == 1);
  std::vector<SpanRecord> phases;
  SpanRecord step;
  int inside = 0;
  for (const SpanRecord& s : tracks[0].spans) {
    if (s.label->category == std::string("step")) step = s;
    if (s.label == inner) CHECK(s.leaf == (inside++ == 0 ? -1 : 3));
    if (s.label->category == std::string("phase") && s.label != inner) phases.push_back(s);
  }
  CHECK(inside == 2);
  REQUIRE(phases.size() == 3);
  CHECK(phases[1].label->name == "b");
  CHECK(phases[1].leaf == 3);
  CHECK(phases[0].begin == step.begin);
  CHECK(phases[1].begin == phases[0].end);
  CHECK(phases[2].begin == phases[1].end);
  CHECK(phases[2].end == step.end);
}

TEST_CASE("profile: threads have tracks of their own; the next of the same name goes on with it") {
  const SpanLabelPtr job = label("job"), own = label("own");
  REQUIRE(start_profile());
  {
    const Span span(&job);
    const SpanPlace place = span_place();
    for (int i = 0; i < 2; ++i)
      std::thread([&] {
        name_thread("helper");
        const Span part = Span::part_of(&place);
        const Span mine(&own);
      }).join();
    std::thread([&] {
      name_thread("idle");
      Span part = Span::part_of(&place);
      part.discard();
    }).join();
  }
  auto tracks = by_thread(stop_profile());
  CHECK(tracks.size() == 2);
  REQUIRE(tracks["helper"].size() == 4);
  CHECK(tracks["helper"][0].label == own);
  CHECK_FALSE(tracks["helper"][0].part);
  CHECK(tracks["helper"][1].label == job);
  CHECK(tracks["helper"][1].part);
}
