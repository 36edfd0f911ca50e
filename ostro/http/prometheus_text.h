// PrometheusText: writes figures in the text format that Prometheus reads (version 0.0.4).
//
// Names and units are the caller's: base units (seconds, bytes), counters end in _total. One thread uses it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ostro::http {

// Of its Content-Type.
inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

// Names and values of the labels of one sample. Values may have any bytes.
using Labels = std::vector<std::pair<std::string_view, std::string>>;

class PrometheusText {
 public:
  // Begins the family of samples that follow: "counter", "gauge" or "histogram". `help` is one line.
  void family(std::string_view name, std::string_view type, std::string_view help);
  // A sample of the present family.
  void sample(double value, const Labels& labels = {});
  // A family of one sample.
  void counter(std::string_view name, std::string_view help, double value);
  void gauge(std::string_view name, std::string_view help, double value);
  // A family of one histogram: how many values were at most each of the limits, how many there were, and
  // their sum.
  void histogram(std::string_view name, std::string_view help, std::span<const double> limits,
                 std::span<const int64_t> at_most, int64_t count, double sum);

  const std::string& text() const { return text_; }

 private:
  void line(std::string_view suffix, const Labels& labels, double value);

  std::string text_, name_;
};

}  // namespace ostro::http
