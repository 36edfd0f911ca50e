// Rule: what must hold of the numbers of a hypothesis: comparisons, for example "low95 > 0 and n >= 3". A
// value; reading one is a pure function.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::lab {

// The names that a rule may use: n, mean, min, max, low95, high95 of the values; low and high as predicted.
const std::vector<std::string>& rule_names();

class Rule {
 public:
  // Comparisons (<, <=, >, >=) of a name with a number or another name, joined by "and". Errors say what is
  // wrong, with the nearest name.
  static Result<Rule> parse(const std::string& text);

  // Whether all comparisons hold. One of a name that has no value does not.
  bool holds(const std::map<std::string, double>& values) const;
  // The rule with one space between its words.
  std::string text() const;
  // Whether a comparison has the name.
  bool uses(const std::string& name) const;

 private:
  struct Comparison {
    std::string left, sign, right;  // names, or numbers as they were written
  };
  std::vector<Comparison> comparisons_;
};

}  // namespace ostro::lab
