// Tracks: what reading refuses, and what two tracks have in common when they decide the same. Constants.
#include "ostro/board/track.h"

#include <doctest/doctest.h>

#include <array>

#include "ostro/config/config.h"

namespace ostro::board {
namespace {

const std::string kHash(64, 'a'), kOther(64, 'b');

Result<Track> parsed(const std::string& text) {
  ASSIGN_OR_RETURN(const config::Node tree, config::parse_yaml(text, "track.yaml", /*includes=*/false));
  Track out;
  RETURN_IF_ERROR(config::read_and_resolve(tree, &out));
  return out;
}
std::string good() {
  return "track: t\ndata: [" + kOther + ", " + kHash + "]\ntokenizer: " + kHash +
         "\nevaluation: {files: [a.txt], sha256: " + kHash + "}\nflops: 1e9\n";
}
std::string with(const std::string& from, const std::string& to) {
  std::string text = good();
  return text.replace(text.find(from), from.size(), to);
}
std::string refused(const std::string& text) {
  const auto track = parsed(text);
  return track.ok() ? "" : track.error().message();
}

}  // namespace

TEST_CASE("a track is read, and written so that it is read again") {
  const Track track = parsed(good()).value();
  CHECK(track.data == std::vector<std::string>{kHash, kOther});  // sorted: their order decides nothing
  CHECK(track.score_budget() == 1e9);
  CHECK(track_text(parsed(track_yaml(track)).value()) == track_text(track));
  // Where the texts lie decides nothing, all else does.
  CHECK(track_text(parsed(with("a.txt", "b.txt")).value()) == track_text(track));
  CHECK(track_text(parsed(with("1e9", "2e9")).value()) != track_text(track));
  CHECK(track_text(parsed(good() + "steps: 3\n").value()) != track_text(track));
}

TEST_CASE("what is no track is refused, with the key") {
  for (const auto& [from, to, words] :
       {std::array{"track: t", "track: ''", "track: needs a name"}, std::array{"1e9", "0", "flops: must be"},
        std::array{"files: [a.txt]", "files: []", "evaluation.files: needs a file"},
        std::array{"1e9\n", "1e9\nsteps: 0\n", "steps: must be 1 or more"},
        std::array{"1e9\n", "1e9\nstep: 3\n", "steps"}, std::array{"flops: 1e9", "x: 1", "x"}}) {
    CAPTURE(to);
    CHECK(refused(with(from, to)).find(words) != std::string::npos);
  }
  CHECK(refused(with(kOther, kHash)).find("data: has a root twice") != std::string::npos);
  CHECK(refused(with(kOther, "abc")).find("data: \"abc\" is no SHA-256") != std::string::npos);
}

}  // namespace ostro::board
