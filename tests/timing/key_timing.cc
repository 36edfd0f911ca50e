// key_timing: measures whether the time that a server takes to refuse a key tells how much of the key is
// right.
//   key_timing [--samples N] [--seed S]
//
// Each comparison gets two kinds of wrong keys, drawn for each sample: wrong from the beginning on, and wrong
// only near the end. A sample is the time of some calls with one key. All comparisons take turns, so that
// whatever else the machine does reaches them alike. Of each, the slowest tenth is left out, and Welch's t
// says whether the two kinds differ: beyond 4.5 they do (the limit of TVLA and dudect).
//
// Measured are the comparison of the server's file of keys, ApiKeys::owner, and the comparison of hashes that
// it uses, same_code. Beside each stands a planted one that stops at the first difference. The program ends
// with 0 if those of ours are below the limit and the planted ones beyond it.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ostro/base/machine.h"
#include "ostro/base/sha256.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/serve/gate/api_keys.h"

using namespace ostro;

namespace {

constexpr double kLimit = 4.5;     // of |t|
constexpr double kKept = 0.9;      // of the samples
constexpr size_t kSameDigits = 4;  // of two hashes that are nearly one: so many of 64 are found by trying

// The planted comparison. Every digit costs time.
__attribute__((noinline)) bool stops_early(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

struct Compared {
  std::string name;
  bool is_planted;
  int calls;  // of a sample
  std::function<bool(const std::string&)> accepts;
  std::string wrong[2];  // from the beginning on, and near the end
  std::vector<double> nanoseconds[2] = {};
};

void take_sample(Compared& one, size_t kind) {
  static std::string given;  // both kinds lie in the same place
  given = one.wrong[kind];
  int accepted = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < one.calls; ++i) accepted += one.accepts(given);
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  if (accepted > 0) {
    fmt::print(stderr, "{}: a wrong key was taken\n", one.name);
    std::exit(1);
  }
  one.nanoseconds[kind].push_back(time.count() / one.calls);
}

struct Moments {
  double mean = 0, variance = 0, count = 0;
};

Moments moments_below(const std::vector<double>& values, double limit) {
  Moments out;
  for (const double x : values)
    if (x <= limit) {
      const double before = x - out.mean;
      out.mean += before / ++out.count;
      out.variance += before * (x - out.mean);
    }
  out.variance /= out.count - 1;
  return out;
}

// Whether the measurement says what is expected.
bool tell(Compared& one) {
  std::vector<double> all = one.nanoseconds[0];
  all.insert(all.end(), one.nanoseconds[1].begin(), one.nanoseconds[1].end());
  const auto slow = all.begin() + static_cast<std::ptrdiff_t>(kKept * static_cast<double>(all.size() - 1));
  std::nth_element(all.begin(), slow, all.end());
  const Moments early = moments_below(one.nanoseconds[0], *slow),
                late = moments_below(one.nanoseconds[1], *slow);
  const double t =
      (late.mean - early.mean) / std::sqrt(early.variance / early.count + late.variance / late.count);
  const bool differ = std::abs(t) > kLimit;
  fmt::print(
      "{}: {:.2f} ns where a key is wrong from the beginning, {:.2f} ns near the end, t = {:.1f}: {}\n",
      one.name, early.mean, late.mean, t, differ ? "told apart" : "not told apart");
  return differ == one.is_planted;
}

// A wrong key whose hash begins with as many digits of `hash`, and no more.
std::string key_like(const std::string& hash, size_t digits, std::mt19937_64& draw) {
  for (;;) {
    const std::string key = sha256_hex(std::to_string(draw()));
    const std::string other = sha256_hex(key);
    if (other.compare(0, digits, hash, 0, digits) == 0 && other[digits] != hash[digits]) return key;
  }
}

int measure(int64_t samples, uint64_t seed) {
  std::mt19937_64 draw(seed);
  const std::string key = sha256_hex(std::to_string(draw())), hash = sha256_hex(key);
  io::MemoryFileSystem fs;
  check_ok(io::write_file_atomically(fs, "keys", hash + " anna\n"));
  const serve::ApiKeys keys = serve::ApiKeys::open(fs, "keys").value();

  const auto with_change = [](std::string text, size_t at) {
    text[at] = text[at] == '0' ? '1' : '0';
    return text;
  };
  const std::string hashes[2] = {with_change(hash, 0), with_change(hash, hash.size() - 1)};
  const std::string guesses[2] = {key_like(hash, 0, draw), key_like(hash, kSameDigits, draw)};
  std::vector<Compared> all = {
      {"same_code of two hashes",
       false,
       64,
       [&](const std::string& x) { return same_code(x, hash); },
       {hashes[0], hashes[1]}},
      {"planted: two hashes, digit by digit",
       true,
       64,
       [&](const std::string& x) { return stops_early(x, hash); },
       {hashes[0], hashes[1]}},
      {"the file of keys",
       false,
       4,
       [&](const std::string& x) { return !keys.owner(x).empty(); },
       {guesses[0], guesses[1]}},
      {"the file of keys, keys that differ in one digit",
       false,
       4,
       [&](const std::string& x) { return !keys.owner(x).empty(); },
       {with_change(key, 0), with_change(key, key.size() - 1)}},
      {"planted: the hash is made, then the keys are compared digit by digit",
       true,
       4,
       [&](const std::string& x) { return sha256_hex(x) == hash || stops_early(x, key); },
       {with_change(key, 0), with_change(key, key.size() - 1)}},
  };
  for (int64_t i = 0; i < samples; ++i)
    for (Compared& one : all) take_sample(one, draw() & 1);
  bool good = true;
  for (Compared& one : all) good = tell(one) && good;
  fmt::print("{}\n", good ? "good" : "NOT AS EXPECTED");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t samples = 500'000;
  uint64_t seed = 1;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--samples" && std::atoll(value.c_str()) >= 1000)
      samples = std::atoll(value.c_str());
    else if (flag == "--seed" && !value.empty())
      seed = std::strtoull(value.c_str(), nullptr, 10);
    else {
      fmt::print(stderr, "usage: key_timing [--samples N, at least 1000] [--seed S]\n");
      return 2;
    }
  }
  char date[16] = "";
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &parts));
  fmt::print("\nTime of comparing keys: {} samples each, seed {}, {}, {}\n", samples, seed, date,
             processor_name());
  return measure(samples, seed);
}
