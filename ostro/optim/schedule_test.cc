// The learning rate at the edges of warm-up, plateau and fall.
#include "ostro/optim/schedule.h"

#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <vector>

namespace ostro::optim {
namespace {

AdamOptions options(LrSchedule schedule, double warmup, std::optional<double> decay = {}) {
  AdamOptions o;
  o.learning_rate = 1.0;
  o.min_lr_ratio = 0.125;
  o.lr_schedule = schedule;
  o.warmup = warmup;
  o.decay = decay;
  return o;
}

TEST_CASE("a fraction is the one that was written, not the double below it") {
  CHECK(static_cast<int64_t>(0.29 * 100) == 28);
  CHECK(steps_of(0.29, 100) == 29);
  for (const int64_t n : {1, 3, 7, 10, 30, 97, 100, 1000, 12345, 1'000'000})
    for (int64_t k = 0; k <= n; k += 1 + n / 1000) {
      const double share = static_cast<double>(k) / static_cast<double>(n);
      CHECK(steps_of(share, n) == k);
      if (k > 0) CHECK(steps_of(std::nextafter(share, 0.0), n) == k - 1);
    }
  for (int64_t thousandths = 0; thousandths <= 1000; ++thousandths)  // as decimals: 0.001 and on
    for (const int64_t n : {10, 200, 250, 333, 5000})
      CHECK(steps_of(static_cast<double>(thousandths) / 1000, n) == thousandths * n / 1000);
}

TEST_CASE("warm-up rises from 0 and reaches the peak behind its last step, as a fraction or in steps") {
  for (const LrSchedule s :
       {LrSchedule::kConstant, LrSchedule::kCosine, LrSchedule::kLinear, LrSchedule::kInvSqrt})
    for (const double warmup : {0.25, 4.0}) {
      const AdamOptions o = options(s, warmup);
      CHECK(steps_of(warmup, 16) == 4);
      CHECK(learning_rate(o, 0, 16) == 0.0);
      CHECK(learning_rate(o, 1, 16) == 0.25);
      CHECK(learning_rate(o, 3, 16) == 0.75);
      CHECK(learning_rate(o, 4, 16) == 1.0);
      CHECK(learning_rate(options(s, 0), 0, 16) == 1.0);
    }
  CHECK(steps_of(1, 16) == 16);  // up to 1 a fraction
  CHECK(steps_of(2, 16) == 2);
  CHECK(steps_of(0.3, 5) == 1);  // rounded down
  CHECK(steps_of(0, 100) == 0);
  CHECK(steps_of(0.009, 100) == 0);
}

TEST_CASE("the fall over all that warm-up leaves: exact values") {
  CHECK(learning_rate(options(LrSchedule::kConstant, 4.0), 19, 20) == 1.0);
  const AdamOptions linear = options(LrSchedule::kLinear, 4.0);
  CHECK(learning_rate(linear, 8, 20) == 1 - 0.875 * 0.25);
  CHECK(learning_rate(linear, 12, 20) == 1 - 0.875 * 0.5);
  CHECK(learning_rate(linear, 19, 20) == 1 - 0.875 * (15.0 / 16));  // the floor would be step 20
  CHECK(learning_rate(linear, 20, 20) == 0.125);
  const AdamOptions cosine = options(LrSchedule::kCosine, 4.0);
  CHECK(learning_rate(cosine, 12, 20) == doctest::Approx(0.5625).epsilon(1e-15));
  CHECK(learning_rate(cosine, 8, 20) ==
        doctest::Approx(0.125 + 0.875 * 0.5 * (1 + std::sqrt(0.5))).epsilon(1e-15));
  CHECK(learning_rate(cosine, 20, 20) == 0.125);
  const AdamOptions inv = options(LrSchedule::kInvSqrt, 4.0);
  CHECK(learning_rate(inv, 16, 200) == 0.5);
  CHECK(learning_rate(inv, 64, 200) == 0.25);
  CHECK(learning_rate(inv, 1000, 2000) == 0.125);  // never below the floor
  CHECK(learning_rate(options(LrSchedule::kInvSqrt, 0), 3, 20) == 0.5);
}

TEST_CASE("with decay the peak holds until the last steps, and only these follow the schedule") {
  for (const double decay : {0.2, 4.0}) {
    const AdamOptions o = options(LrSchedule::kLinear, 4.0, decay);
    CHECK(learning_rate(o, 4, 20) == 1.0);
    CHECK(learning_rate(o, 16, 20) == 1.0);
    CHECK(learning_rate(o, 17, 20) == 1 - 0.875 * 0.25);
    CHECK(learning_rate(o, 19, 20) == 1 - 0.875 * 0.75);
  }
  CHECK(learning_rate(options(LrSchedule::kLinear, 4.0, 0.0), 19, 20) == 1.0);
  CHECK(learning_rate(options(LrSchedule::kCosine, 1.0), 19, 20) == 19.0 / 20);  // all warm-up
}

TEST_CASE("monotone and within bounds over a whole run") {
  for (const LrSchedule s : {LrSchedule::kCosine, LrSchedule::kLinear, LrSchedule::kInvSqrt})
    for (const std::optional<double>& decay : {std::optional<double>(), std::optional<double>(0.3)}) {
      const AdamOptions o = options(s, 0.1, decay);
      double last = 2;
      for (int64_t step = steps_of(0.1, 97); step < 97; ++step) {
        const double lr = learning_rate(o, step, 97);
        CHECK(lr <= last);
        CHECK(lr >= 0.125);
        CHECK(lr <= 1.0);
        last = lr;
      }
    }
}

TEST_CASE("cycles repeat warm-up, constant rate and decay; a later one rises from where the last one ended") {
  AdamOptions o = options(LrSchedule::kLinear, 4.0, 5.0);
  o.cycles = 2;
  o.rewarmup = 2;
  CHECK(cycle_bounds(o, 41) == std::vector<int64_t>{0, 20, 41});
  for (int64_t step = 0; step < 20; ++step) {  // the first cycle is a run of its own
    AdamOptions one = o;
    one.cycles.reset();
    CHECK(learning_rate(o, step, 41) == learning_rate(one, step, 20));
  }
  const double last = learning_rate(o, 19, 41);
  CHECK(last == 1 - 0.875 * 0.8);
  CHECK(learning_rate(o, 20, 41) == last);
  CHECK(learning_rate(o, 21, 41) == last + (1 - last) * 0.5);
  CHECK(learning_rate(o, 22, 41) == 1.0);
  CHECK(learning_rate(o, 36, 41) == 1.0);
  CHECK(learning_rate(o, 40, 41) == 1 - 0.875 * 0.8);
  o.cycles.reset();
  o.cycle_length = 16;
  CHECK(cycle_bounds(o, 40) == std::vector<int64_t>{0, 16, 32, 40});
  o.cycle_length = 0.25;
  o.rewarmup = 0;
  CHECK(cycle_bounds(o, 40) == std::vector<int64_t>{0, 10, 20, 30, 40});
  CHECK(learning_rate(o, 10, 40) == 1.0);
  CHECK(o.validate(40).ok());
  o.cycles = 2;
  CHECK(o.validate(40).error().message().find("optimizer.cycles: is 2, and optimizer.cycle_length is 0.25") ==
        0);
  o.cycle_length.reset();
  o.cycles = 10;
  CHECK(o.validate(40).error().message().find(
            "optimizer.warmup: 4 steps of warm-up and 5 of decay do not fit into "
            "a cycle, which is 4") == 0);
}

TEST_CASE("a stage counts from its own first step: its rates are those of a run that begins there") {
  for (const LrSchedule schedule :
       {LrSchedule::kConstant, LrSchedule::kCosine, LrSchedule::kLinear, LrSchedule::kInvSqrt})
    for (const bool cyclic : {false, true})
      for (const double warmup : {0.0, 0.1, 3.0}) {
        AdamOptions alone = options(schedule, warmup, cyclic ? std::optional(0.25) : std::nullopt);
        if (cyclic) alone.cycle_length = 16, alone.rewarmup = 2;
        AdamOptions stage = alone;
        stage.schedule_from = 23;
        check_ok(stage.validate(97));
        for (int64_t i = 0; i < 97 - 23; ++i)
          CHECK(learning_rate(stage, 23 + i, 97) == learning_rate(alone, i, 97 - 23));
        for (int64_t step = 0; step < 23; ++step)
          CHECK(learning_rate(stage, step, 97) == learning_rate(alone, 0, 97 - 23));
      }
  // By hand: 8 steps behind step 100, 2 of warm-up, then down to an eighth in 6.
  AdamOptions o = options(LrSchedule::kLinear, 2.0);
  o.schedule_from = 100;
  const std::vector<double> rates = {0.0, 0.5, 1.0, 1 - 0.875 / 6.0, 1 - 0.875 * (2.0 / 6)};
  for (size_t i = 0; i < rates.size(); ++i)
    CHECK(learning_rate(o, 100 + static_cast<int64_t>(i), 108) == doctest::Approx(rates[i]).epsilon(1e-15));
  // One step later it is another schedule.
  o.schedule_from = 101;
  CHECK(learning_rate(o, 101, 108) == 0.0);
}

TEST_CASE("the first warm-up begins at warmup_from, and only the first") {
  AdamOptions o = options(LrSchedule::kLinear, 4.0, 4.0);
  o.warmup_from = 0.25;
  const std::vector<double> up = {0.25, 0.4375, 0.625, 0.8125, 1.0};
  for (size_t i = 0; i < up.size(); ++i) {
    CHECK(learning_rate(o, static_cast<int64_t>(i), 20) == up[i]);
    o.schedule_from = 30;
    CHECK(learning_rate(o, 30 + static_cast<int64_t>(i), 50) == up[i]);
    o.schedule_from = 0;
  }
  o.warmup_from = 2;  // down to the peak, when the stage before had a higher rate
  CHECK(learning_rate(o, 0, 20) == 2.0);
  CHECK(learning_rate(o, 1, 20) == 1.75);
  CHECK(learning_rate(o, 4, 20) == 1.0);
  o.cycles = 2, o.rewarmup = 4;
  AdamOptions plain = o;
  plain.warmup_from = 0;
  CHECK(learning_rate(o, 0, 40) == 2.0);
  for (int64_t step = 4; step < 40; ++step)
    CHECK(learning_rate(o, step, 40) == learning_rate(plain, step, 40));
}

TEST_CASE("options of a stage that make no sense are refused by key, with what they may be") {
  const auto message = [](const auto& change, int64_t steps = 100) {
    AdamOptions o = options(LrSchedule::kLinear, 0.1);
    change(o);
    const Status s = o.validate(steps);
    return s.ok() ? std::string("ok") : s.error().message();
  };
  CHECK(message([](AdamOptions& o) { o.schedule_from = 99, o.warmup = 0; }) == "ok");
  for (const int64_t from : {int64_t{-1}, int64_t{100}, int64_t{1000}})
    CHECK(message([&](AdamOptions& o) {
            o.schedule_from = from;
          }).find("is no step of a run of 100 (trainer.num_train_steps); use 0 to 99") != std::string::npos);
  CHECK(message([](AdamOptions& o) { o.warmup_from = -1; }).find("optimizer.warmup_from: -1") == 0);
  CHECK(message([](AdamOptions& o) { o.warmup_from = std::nan(""); }).find("optimizer.warmup_from") == 0);
  CHECK(message([](AdamOptions& o) {
          o.warmup_from = 0.5, o.warmup = 0;
        }).find("optimizer.warmup_from: is 0.5, but no step warms up") == 0);
  // Fractions are of the stage: a tenth of 5 steps is none.
  CHECK(message([](AdamOptions& o) { o.warmup_from = 0.5, o.schedule_from = 95; }).find("no step warms up") !=
        std::string::npos);
  CHECK(
      message([](AdamOptions& o) { o.warmup = 8, o.decay = 8, o.schedule_from = 90; })
          .find("8 steps of warm-up and 8 of decay do not fit into the run from optimizer.schedule_from on, "
                "which is 10") != std::string::npos);
  CHECK(message([](AdamOptions& o) {
          o.cycles = 20, o.schedule_from = 90, o.warmup = 0;
        }).find("use 1 to the steps from optimizer.schedule_from on") != std::string::npos);
}

TEST_CASE("options that make no sense are refused by key") {
  const auto message = [](const AdamOptions& o) {
    const Status s = o.validate(100);
    return s.ok() ? std::string("ok") : s.error().message();
  };
  CHECK(message(options(LrSchedule::kLinear, 0.5, 0.5)) == "ok");
  CHECK(message(options(LrSchedule::kLinear, 51, 0.5)).find("51 steps of warm-up and 50 of decay") !=
        std::string::npos);
  CHECK(message(options(LrSchedule::kLinear, 1.5)).find("optimizer.warmup") == 0);
  CHECK(message(options(LrSchedule::kLinear, -0.5)).find("optimizer.warmup") == 0);
  CHECK(message(options(LrSchedule::kLinear, 0, -1.0)).find("optimizer.decay") == 0);
  AdamOptions o;
  o.beta2 = 1;
  CHECK(message(o).find("optimizer.beta2") == 0);
  o = {}, o.max_grad_norm = 0.0;
  CHECK(message(o).find("optimizer.max_grad_norm") == 0);
  o = {}, o.learning_rate = std::nan("");
  CHECK(message(o).find("optimizer.learning_rate") == 0);
}

}  // namespace
}  // namespace ostro::optim
