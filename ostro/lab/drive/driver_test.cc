#include "ostro/lab/drive/driver.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ostro/experiment/journal/journal.h"
#include "ostro/io/files/forwarding_file_system.h"
#include "ostro/io/files/local_file_system.h"

namespace ostro::lab {
namespace {

// Changes a file when the folder of the first output is made: after its source was pinned, before it is read.
class ChangesAFile final : public io::ForwardingFileSystem {
 public:
  ChangesAFile(io::FileSystem& base, std::string file) : ForwardingFileSystem(base), file_(std::move(file)) {}

 private:
  Status before(Operation operation, const std::string& path) override {
    if (operation == Operation::kMakeDirs && path.find("/out/") != std::string::npos)
      std::ofstream(file_, std::ios::app) << "more";
    return {};
  }
  std::string file_;
};

TEST_CASE("a source that changes while a step reads it is an error, and nothing of the step stays") {
  namespace files = std::filesystem;
  const files::path top = files::temp_directory_path() / ("ostro_driver_test_" + std::to_string(::getpid()));
  files::create_directories(top);
  std::ofstream(top / "a.txt") << "some words and some more words";
  std::ofstream(top / "plan.yaml") << "lab: l\nquestion: Why?\nsteps:\n"
                                      "  texts: {source: {files: [a.txt], licence: MIT}}\n"
                                      "  words: {tokenizer: {from: $texts, vocab_size: 258}}\n";
  io::FileSystem& fs = io::local_file_system();
  const auto plan = read_plan(fs, (top / "plan.yaml").string());
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  const auto run = [&](io::FileSystem& in, const RunRequest& request) {
    NoProgress progress;
    const auto state = run_plan(Context{in, {}, {}, {}, progress}, Services{}, *plan, request);
    REQUIRE_MESSAGE(state.ok(), state.error().message());
    return state->steps.at(1);
  };
  ChangesAFile changing(fs, (top / "a.txt").string());
  const StepState failed = run(changing, {});
  CHECK(failed.action == Action::kFail);
  CHECK(failed.reason.find("a.txt: was changed while the step read it") != std::string::npos);
  CHECK(files::is_empty(top / "l.lab/out"));
  CHECK(Journal::open(fs, plan->directory())->last_of("words") == nullptr);
  const StepState done = run(fs, {.pin = {"texts"}});
  INFO(done.reason);
  CHECK(done.action == Action::kSkip);
  files::remove_all(top);
}

}  // namespace
}  // namespace ostro::lab
