#include "ostro/shell/shared/progress.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>

#include "ostro/prepare/store/test_corpus.h"

namespace ostro::cli {
namespace {

using Clock = ProgressOutput::Clock;

struct Shown {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::tmpfile(), std::fclose};
  Clock::time_point now{};

  std::string text() const {
    std::string out;
    std::rewind(file.get());
    for (int c = std::fgetc(file.get()); c != EOF; c = std::fgetc(file.get())) out += static_cast<char>(c);
    return out;
  }
};

// A build of 400 MB at 5 MB/s, told every second.
std::string shown(bool is_terminal, int64_t seconds) {
  Shown s;
  REQUIRE(s.file);
  BuildProgressLine line(
      "web", ProgressOutput(s.file.get(), [=] { return is_terminal ? 200 : 0; }, [&s] { return s.now; }));
  const auto progress = line.callback();
  REQUIRE(progress);
  for (int64_t i = 0; i <= seconds; ++i) {
    s.now = Clock::time_point() + std::chrono::seconds(i);
    progress({.files_done = i / 10,
              .files_total = 8,
              .bytes_done = 5'000'000 * i,
              .bytes_total = 400'000'000,
              .documents = 1000 * i,
              .tokens = 1'200'000 * i});
  }
  line.end();
  return s.text();
}

TEST_CASE(
    "progress: without a terminal there is a line every 30 seconds, with rows, bytes, rate and what is "
    "left") {
  CHECK(shown(false, 29).empty());
  CHECK(shown(false, 80) ==
        "web:  37.5%  3 of 8 files  30000 documents  36.0M tokens  150.0 of 400.0 MB  5.0 MB/s  0:50 left\n"
        "web:  75.0%  6 of 8 files  60000 documents  72.0M tokens  300.0 of 400.0 MB  5.0 MB/s  0:20 left\n");
}

TEST_CASE(
    "progress: a tokenizer that is trained first has a line of its own, and its time is not the build's") {
  using Stage = tokenizer::TrainProgress::Stage;
  Shown s;
  REQUIRE(s.file);
  BuildProgressLine line("web", ProgressOutput(s.file.get(), [] { return 0; }, [&s] { return s.now; }));
  const auto train = line.tokenizer_callback();
  for (uint64_t i = 0; i <= 70; ++i) {
    s.now = Clock::time_point() + std::chrono::seconds(i);
    if (i < 40)
      train({Stage::kCounting, 1'000'000 * i, 40'000'000});
    else
      train({Stage::kMerging, 256 + 10 * (i - 40), 656});
  }
  for (int64_t i = 1; i <= 40; ++i) {
    s.now += std::chrono::seconds(1);
    line.callback()(
        {.files_done = 1, .files_total = 2, .bytes_done = 1'000'000 * i, .bytes_total = 80'000'000});
  }
  line.end();
  CHECK(s.text() ==
        "tokenizer, counting pieces:  75.0%  30.0 of 40.0 MB  0:10 left\n"
        "tokenizer, merging pairs:  69.5%  456 of 656 tokens  0:20 left\n"
        "web:   1.2%  1 of 2 files  0 documents  0.0M tokens  1.0 of 80.0 MB  1.0 MB/s  1:19 left\n"
        "web:  38.8%  1 of 2 files  0 documents  0.0M tokens  31.0 of 80.0 MB  1.0 MB/s  0:49 left\n");
}

TEST_CASE("progress: a build that goes on after a kill says from its first line on what is left") {
  for (const std::string path : {"a.jsonl", "a.jsonl.gz"}) {
    CAPTURE(path);
    io::MemoryFileSystem fs;
    const std::string lines = prepare::json_lines(3000);
    prepare::write(fs, path, path == "a.jsonl" ? lines : prepare::packed(io::Compression::kGzip, lines));
    data::DataOptions options = prepare::corpus_options("in");
    options.train_urls = {path};
    data::BuildSettings settings;
    settings.threads = 2;
    settings.commit_bytes = 1;
    prepare::build_half(fs, options, settings);
    // Every report comes a second after the one before.
    Shown s;
    REQUIRE(s.file);
    BuildProgressLine line("web", ProgressOutput(s.file.get(), [] { return 200; }, [&s] { return s.now; }));
    int64_t reports = 0;
    settings.progress = [&, draw = line.callback()](const data::BuildProgress& p) {
      s.now += std::chrono::seconds(1);
      ++reports;
      draw(p);
    };
    REQUIRE(prepare::build_store(fs, options, prepare::test_tokenizer(), settings).ok());
    const std::string text = s.text();
    REQUIRE(reports >= 4);
    size_t at = 0;
    for (int64_t i = 1; i <= reports; ++i) {
      at = text.find("MB/s  0:", at) + 8;
      REQUIRE(at > 8);
      CAPTURE(text);
      CHECK(std::abs(std::stol(text.substr(at, 2)) - (reports - i)) <= 1);
    }
  }
}

TEST_CASE("progress: the time left is that of what is under way, and is not guessed from nothing") {
  Shown s;
  REQUIRE(s.file);
  PercentProgressLine line(ProgressOutput(s.file.get(), [] { return 80; }, [&s] { return s.now; }));
  const auto after = [&](int seconds, const char* what, double done) {
    s.now += std::chrono::seconds(seconds);
    line.show(what, done);
  };
  after(100, "hashing", 0);
  after(10, "hashing", 1);
  after(1, "copying", 1e-9);
  after(10, "copying", 0.25);
  line.end();
  const std::string text = s.text();
  CAPTURE(text);
  CHECK(text.find("hashing:   0.0%\r") != std::string::npos);
  CHECK(text.find("copying:   0.0%\r") != std::string::npos);
  CHECK(text.find("copying:  25.0%  0:30 left") != std::string::npos);
}

TEST_CASE("progress: on a terminal one line is redrawn, and stands at the end") {
  const std::string text = shown(true, 3);
  CHECK(text.find("\r\x1b[Kweb:   1.2%") != std::string::npos);
  CHECK(text.find('\n') == text.size() - 1);
  CHECK(text.find("1.2%") < text.find("\r\x1b[Kweb:   3.8%"));
}

TEST_CASE("progress: a line is as wide as the terminal at most, and what is done is said once") {
  using Stage = tokenizer::TrainProgress::Stage;
  Shown s;
  REQUIRE(s.file);
  TokenizerProgressLine line(ProgressOutput(s.file.get(), [] { return 50; }, [&s] { return s.now; }));
  for (int i = 0; i < 3; ++i) line.draw({Stage::kMerging, 656, 656});
  CHECK(s.text() == "\r\x1b[Ktokenizer, merging pairs: 100.0%\n");
}

}  // namespace
}  // namespace ostro::cli
