// The text that Prometheus reads.
#include "ostro/http/prometheus_text.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>

namespace ostro::http {
namespace {

TEST_CASE("families, labels that must be escaped, and numbers that are no numbers") {
  PrometheusText out;
  out.counter("a_total", "How many.", 3);
  out.family("b_bytes", "gauge", "How much.");
  out.sample(1.5, {{"of", "x\"y\\z\nw"}, {"in", "here"}});
  out.sample(1e300);
  out.gauge("c", "No number.", std::numeric_limits<double>::quiet_NaN());
  out.gauge("d", "Large.", -std::numeric_limits<double>::infinity());
  CHECK(out.text() ==
        "# HELP a_total How many.\n# TYPE a_total counter\na_total 3\n"
        "# HELP b_bytes How much.\n# TYPE b_bytes gauge\n"
        "b_bytes{of=\"x\\\"y\\\\z\\nw\",in=\"here\"} 1.5\nb_bytes 1e+300\n"
        "# HELP c No number.\n# TYPE c gauge\nc NaN\n"
        "# HELP d Large.\n# TYPE d gauge\nd -Inf\n");
}

TEST_CASE("a histogram has all its limits, the sum and the count") {
  PrometheusText out;
  const std::array<double, 2> limits = {0.5, 10};
  const std::array<int64_t, 2> at_most = {1, 3};
  out.histogram("t_seconds", "Times.", limits, at_most, 4, 100.25);
  CHECK(out.text() ==
        "# HELP t_seconds Times.\n# TYPE t_seconds histogram\nt_seconds_bucket{le=\"0.5\"} 1\n"
        "t_seconds_bucket{le=\"10\"} 3\nt_seconds_bucket{le=\"+Inf\"} 4\nt_seconds_sum 100.25\n"
        "t_seconds_count 4\n");
}

}  // namespace
}  // namespace ostro::http
