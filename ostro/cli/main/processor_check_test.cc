#include "ostro/cli/main/processor_check.h"

#include <doctest/doctest.h>

#include <string>

namespace ostro::cli {
namespace {

// All that x86-64-v3 asks for, and nothing else: as the psABI's table of the levels names it.
constexpr ProcessorWords kLevelThree = {
    .one_c = 1u << 0 | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 22 | 1u << 23 | 1u << 27 |
             1u << 28 | 1u << 29,
    .seven_b = 1u << 3 | 1u << 5 | 1u << 8,
    .extended_c = 1u << 5,
    .saved = 7,
};

TEST_CASE("a processor of x86-64-v3 lacks nothing, and this one runs the test") {
  CHECK(missing_instructions(kLevelThree) == nullptr);
  check_processor();
}

TEST_CASE("each missing part is named") {
  const auto missing = [](auto change) {
    ProcessorWords words = kLevelThree;
    change(words);
    const char* name = missing_instructions(words);
    return std::string(name == nullptr ? "nothing" : name);
  };
  CHECK(missing([](ProcessorWords& w) { w.seven_b &= ~(1u << 5); }) == "AVX2");
  CHECK(missing([](ProcessorWords& w) { w.one_c &= ~(1u << 12); }) == "FMA");
  CHECK(missing([](ProcessorWords& w) { w.one_c &= ~(1u << 28); }) == "AVX");
  CHECK(missing([](ProcessorWords& w) { w.one_c &= ~(1u << 29); }) == "F16C");
  CHECK(missing([](ProcessorWords& w) { w.one_c &= ~(1u << 22); }) == "MOVBE");
  CHECK(missing([](ProcessorWords& w) { w.seven_b &= ~(1u << 3); }) == "BMI1");
  CHECK(missing([](ProcessorWords& w) { w.seven_b &= ~(1u << 8); }) == "BMI2");
  CHECK(missing([](ProcessorWords& w) { w.extended_c = 0; }) == "LZCNT");
  CHECK(missing([](ProcessorWords& w) { w.saved = 3; }).find("operating system") != std::string::npos);
  CHECK(missing([](ProcessorWords& w) { w = {}; }) == "SSE3");
}

}  // namespace
}  // namespace ostro::cli
