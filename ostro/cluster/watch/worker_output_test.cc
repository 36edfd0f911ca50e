// What workers on several machines write, kept in a folder.
#include "ostro/cluster/watch/worker_output.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <latch>
#include <memory>
#include <string>

#include "ostro/io/files/forwarding_file_system.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::cluster {
namespace {

// The lines of a file without their times.
std::string kept_lines(io::FileSystem& fs, const std::string& path) {
  const auto text = fs.read_file(path);
  REQUIRE_MESSAGE(text.ok(), path);
  std::string out;
  for (size_t at = 0; at < text->size();) {
    const size_t end = text->find('\n', at);
    CHECK(text->substr(at, end - at).find("Z ") == 19);
    out += text->substr(at + 21, end + 1 - at - 21);
    at = end + 1;
  }
  return out;
}

TEST_CASE("each worker has a file, by its host; the next one goes on in that of one that has ended") {
  io::MemoryFileSystem fs;
  auto output = std::make_unique<WorkerOutput>(fs, "run/stderr");
  output->said("n1", 7, "first of se");
  output->said("n1", 8, "another\n");
  output->said("n1", 7, "ven\nwithout an end");
  output->said("../n 2", 7, "elsewhere\n");
  output->gone("n1", 7, "the connection was closed");
  output->gone("n3", 1, "it wrote nothing");
  output->said("n1", 9, "the next\n");
  output.reset();
  CHECK(kept_lines(fs, "run/stderr/n1-0.log") ==
        "7 first of seven\n7 without an end\n7 [the connection was closed]\n9 the next\n");
  CHECK(kept_lines(fs, "run/stderr/n1-1.log") == "8 another\n");
  CHECK(kept_lines(fs, "run/stderr/_._n_2-0.log") == "7 elsewhere\n");
  CHECK(fs.list("run/stderr")->size() == 3);
}

// The thread that writes waits here, where it makes the folder for a first and for a second worker.
class WaitingFileSystem : public io::ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  std::latch at_first{1}, after_first{1}, at_second{1}, after_second{1};

 protected:
  Status before(Operation operation, const std::string& /*path*/) override {
    if (operation != Operation::kMakeDirs) return {};
    ++folders_;
    if (folders_ == 1) at_first.count_down(), after_first.wait();
    if (folders_ == 2) at_second.count_down(), after_second.wait();
    return {};
  }

 private:
  int folders_ = 0;
};

TEST_CASE("what waits to be written has a limit, also in many small pieces, and what is left out is told") {
  constexpr size_t kPieces = 100'000;  // of one byte, which take more than 4 MiB
  io::MemoryFileSystem memory;
  WaitingFileSystem fs(memory);
  auto output = std::make_unique<WorkerOutput>(fs, "run/stderr");
  output->said("n1", 7, "the first\n");
  fs.at_first.wait();
  output->said("n2", 7, "of another\n");
  for (size_t i = 0; i < kPieces; ++i) output->said("n1", 7, "x");
  output->gone("n2", 7, "no room for the reason");
  fs.after_first.count_down();
  fs.at_second.wait();  // nothing waits now
  output->said("n1", 7, "the end\n");
  fs.after_second.count_down();
  output.reset();
  const std::string kept = kept_lines(memory, "run/stderr/n1-0.log");
  const size_t count = static_cast<size_t>(std::count(kept.begin(), kept.end(), 'x'));
  CHECK(count > 0);
  CHECK(kept.ends_with(
      fmt::format("7 ({} bytes of this worker and others left out)\n7 the end\n", kPieces - count)));
  CHECK(count < kPieces);
  CHECK(kept_lines(memory, "run/stderr/n2-0.log") == "7 of another\n");
}

}  // namespace
}  // namespace ostro::cluster
