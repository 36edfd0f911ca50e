// Option, read_options: the options of benchmark programs, as pairs of a name and a value. A figure taken
// with other settings than those that were asked for is worse than none, so an argument that is not
// understood is an error. median: of a figure that was taken several times.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/machine/isa.h"
#include "ostro/products/choose_isa.h"

namespace ostro::bench {

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Option {
  std::string name;                              // with its dashes
  std::string accepted;                          // in words, for messages
  std::function<bool(const std::string&)> read;  // false: the value is not accepted
};

// A whole number from `least` up.
template <typename Int>
Option whole_option(const std::string& name, Int least, Int& out) {
  return {name, fmt::format("a whole number from {} up", least), [&out, least](const std::string& value) {
            const char* const end = value.data() + value.size();
            Int n = 0;
            const auto [stop, error] = std::from_chars(value.data(), end, n);
            if (error != std::errc() || stop != end || n < least) return false;
            out = n;
            return true;
          }};
}

template <typename Int>
Option count_option(const std::string& name, Int& out) {
  return whole_option<Int>(name, 1, out);
}

// Any text but none.
inline Option text_option(const std::string& name, const std::string& accepted, std::string& out) {
  return {name, accepted, [&out](const std::string& value) {
            out = value;
            return !value.empty();
          }};
}

// One of two words; true for the first.
inline Option either_option(const std::string& name, const std::string& yes, const std::string& no,
                            bool& out) {
  return {name, yes + " or " + no, [=, &out](const std::string& value) {
            out = value == yes;
            return value == yes || value == no;
          }};
}

// One of the instruction sets that choose_isa gives here.
inline Option isa_option(const std::string& name, machine::Isa& out) {
  std::string names;
  for (const machine::Isa isa : machine::available_isas())
    if (kernels::choose_isa(machine::isa_name(isa)).ok())
      names += (names.empty() ? "" : " or ") + std::string(machine::isa_name(isa));
  return {name, names, [&out](const std::string& value) {
            const Result<machine::Isa> isa = kernels::choose_isa(value);
            if (value.empty() || !isa.ok()) return false;
            out = *isa;
            return true;
          }};
}

// Reads all arguments; of an option that is given twice the last value stands. Errors: an option that is not
// among `options`, a value that it does not accept, no value.
inline Status read_options(int argc, char** argv, const std::vector<Option>& options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    std::string known;
    const Option* option = nullptr;
    for (const Option& o : options) {
      known += (known.empty() ? "" : ", ") + o.name;
      if (o.name == name) option = &o;
    }
    if (option == nullptr) return invalid_argument(fmt::format("no option {}; there are {}", name, known));
    if (i + 1 == argc)
      return invalid_argument(fmt::format("{} stands without a value; it takes {}", name, option->accepted));
    if (!option->read(argv[i + 1]))
      return invalid_argument(fmt::format("{} takes {}, not \"{}\"", name, option->accepted, argv[i + 1]));
  }
  return {};
}

}  // namespace ostro::bench
