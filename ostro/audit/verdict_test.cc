// Verdicts: their words, and many equal findings as one.
#include "ostro/audit/verdict.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace ostro::audit {
namespace {

TEST_CASE("a finding is one line that begins with its verdict") {
  CHECK(finding_text({Verdict::kDiffers, "at step 7: loss"}) == "differs at step 7: loss");
  CHECK(finding_text({Verdict::kIncomplete, "no end"}) == "incomplete: no end");
  // What a stranger's record says makes no line of its own, and moves no cursor.
  CHECK(finding_text({Verdict::kCannotCheck, "\"a\nequal: all\x1b[2J\""}) ==
        "cannot check: \"a equal: all [2J\"");
}

TEST_CASE("an error of damage differs, any other cannot be checked") {
  CHECK(finding_of(corrupt("x")).verdict == Verdict::kDiffers);
  for (const Error& error :
       {not_found("x"), unsupported("x"), io_error("x"), invalid_argument("x"), busy("x")})
    CHECK(finding_of(error) == Finding{Verdict::kCannotCheck, "x"});
}

TEST_CASE("findings that differ in numbers and hashes are one") {
  std::vector<Finding> all;
  for (int i = 1; i <= 3; ++i) {
    all.push_back({Verdict::kDiffers, fmt::format("step-{:08} is forged: head 0abc{}", 10 * i, i)});
    all.push_back({Verdict::kIncomplete, fmt::format("step-{:08} is forged: head 0abc{}", 10 * i, i)});
  }
  all.push_back({Verdict::kDiffers, "step-00000040 is damaged: cafe"});
  const std::vector<Finding> few = folded(all);
  REQUIRE(few.size() == 3);
  CHECK(few[0] == Finding{Verdict::kDiffers, "step-00000010 is forged: head 0abc1 (and 2 more like it)"});
  CHECK(few[1].verdict == Verdict::kIncomplete);
  CHECK(few[2] == Finding{Verdict::kDiffers, "step-00000040 is damaged: cafe"});
}

}  // namespace
}  // namespace ostro::audit
