#include "ostro/http/prometheus_text.h"

#include <fmt/format.h>

#include <cmath>

namespace ostro::http {
namespace {

// A label's value: backslash, quote and line feed are escaped.
std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

void PrometheusText::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

void PrometheusText::line(std::string_view suffix, const Labels& labels, double value) {
  text_ += name_;
  text_ += suffix;
  for (size_t i = 0; i < labels.size(); ++i)
    text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first, escaped(labels[i].second));
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", number(value));
}

void PrometheusText::sample(double value, const Labels& labels) { line("", labels, value); }

void PrometheusText::counter(std::string_view name, std::string_view help, double value) {
  family(name, "counter", help);
  sample(value);
}

void PrometheusText::gauge(std::string_view name, std::string_view help, double value) {
  family(name, "gauge", help);
  sample(value);
}

void PrometheusText::histogram(std::string_view name, std::string_view help, std::span<const double> limits,
                               std::span<const int64_t> at_most, int64_t count, double sum) {
  family(name, "histogram", help);
  for (size_t i = 0; i < limits.size(); ++i)
    line("_bucket", {{"le", number(limits[i])}}, static_cast<double>(at_most[i]));
  line("_bucket", {{"le", "+Inf"}}, static_cast<double>(count));
  line("_sum", {}, sum);
  line("_count", {}, static_cast<double>(count));
}

}  // namespace ostro::http
