// Whose texts may be shown.
#include "ostro/lab/steps/run_data.h"

#include <doctest/doctest.h>

#include "ostro/io/files/memory_file_system.h"

namespace ostro::lab {
namespace {

bool shows_texts(const std::string& rows) {
  io::MemoryFileSystem fs;
  REQUIRE(fs.write_file("plan.yaml",
                        "lab: l\nquestion: Why?\nshow_texts: [MIT]\nsteps:\n"
                        "  texts: {source: {files: [a.txt], licence: MIT}}\n"
                        "  others: {source: {files: [b.txt], licence: unknown}}\n"
                        "  rows: {run: {program: [sh, -c, ls], outputs: [a], " +
                            rows +
                            "}}\n"
                            "  words: {tokenizer: {from: $rows, vocab_size: 258}}\n")
              .ok());
  const auto plan = read_plan(fs, "plan.yaml", [&](const std::string& path) { return fs.read_file(path); });
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  return texts_may_be_shown(*plan, *plan->find("words"));
}

TEST_CASE("texts may be shown where all that they were made from has a licence that the plan marks") {
  CHECK(shows_texts("inputs: {t: $texts}"));
  CHECK_FALSE(shows_texts("inputs: {t: $texts, o: $others}"));
  CHECK_FALSE(shows_texts("inputs: {t: $texts}, files: [more.txt]"));
  CHECK_FALSE(shows_texts("files: [more.txt]"));
}

}  // namespace
}  // namespace ostro::lab
