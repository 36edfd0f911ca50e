#include "ostro/fleet/slices/slice_search.h"

#include <algorithm>
#include <utility>

namespace ostro::fleet {
namespace {

// The machine that a machine measures with in a round of a tournament in which each pair meets once; itself
// when it pauses.
size_t opponent(size_t machine, size_t round, size_t machines) {
  const size_t seats = machines + machines % 2, last = seats - 1;
  size_t other = machine == last ? last : (round + last - machine) % last;
  if (machine == last) {  // the one that would meet itself: 2 x = round (mod last)
    for (other = 0; (2 * other) % last != round % last;) ++other;
  } else if (other == machine) {
    other = last;
  }
  return other < machines ? other : machine;
}

// Each with each other, round by round.
SliceSearch::Pairs tournament(const std::vector<size_t>& machines) {
  SliceSearch::Pairs out;
  const size_t count = machines.size();
  for (size_t round = 0; round + 1 < count + count % 2; ++round)
    for (size_t i = 0; i < count; ++i)
      if (const size_t other = opponent(i, round, count); i < other)
        out.emplace_back(machines[i], machines[other]);
  return out;
}

}  // namespace

SliceSearch::SliceSearch(std::vector<std::string> known, std::vector<Inside> inside, double limit,
                         double fastest, std::string prefix)
    : names_(std::move(known)),
      inside_(std::move(inside)),
      limit_(limit),
      fastest_(fastest),
      prefix_(std::move(prefix)) {
  if (limit_ <= 0) forget();
}

void SliceSearch::forget() {
  all_ = begins_ = true;
  last_ = false;
  limit_ = 0;
  wave_.clear();
  for (std::string& name : names_)
    if (name.starts_with(kMeasuredPrefix)) name.clear();
}

// Of all machines, or of some of them, which are spread evenly; later only inside machines that have another
// worker now, and where that could tell.
SliceSearch::Pairs SliceSearch::first_pairs() {
  begins_ = false;
  Pairs out;
  std::vector<size_t> sample;
  const size_t machines = names_.size(), most = std::min(machines, kMostPartners);
  if (all_)
    for (size_t i = 0; i < most; ++i) sample.push_back(i * machines / most);
  for (size_t machine = 0; machine < machines; ++machine) {
    if (inside_[machine] == Inside::kOne) continue;
    const bool tells = all_ ? std::find(sample.begin(), sample.end(), machine) != sample.end()
                            : inside_[machine] == Inside::kNew && kMostInMachine >= kApart * fastest_;
    if (tells) out.emplace_back(machine, machine);
  }
  if (all_) {
    wave_ = sample;
    last_ = true;
    const Pairs each = tournament(sample);
    out.insert(out.end(), each.begin(), each.end());
  }
  return out;
}

// At most as many as have a slice already, so that each can measure with another one.
void SliceSearch::next_wave() {
  const auto named = static_cast<size_t>(
      std::count_if(names_.begin(), names_.end(), [](const std::string& name) { return !name.empty(); }));
  const size_t most = is_small() ? names_.size() : named == 0 ? kMostPartners : named;
  tried_.clear();
  for (size_t machine = 0; machine < names_.size() && wave_.size() < most; ++machine)
    if (names_[machine].empty()) wave_.push_back(machine);
}

// Each machine of the wave with one of a slice that it has not tried, and each of those with one at most.
SliceSearch::Pairs SliceSearch::one_round() {
  std::vector<size_t> named;
  for (size_t machine = 0; machine < names_.size(); ++machine)
    if (!names_[machine].empty()) named.push_back(machine);
  std::vector<bool> taken(names_.size());
  ++turn_;
  Pairs out;
  for (size_t place = 0; place < wave_.size(); ++place)
    for (size_t i = 0; i < named.size(); ++i) {
      const size_t other = named[(place + turn_ + i) % named.size()];
      if (taken[other] || !tried_[wave_[place]].insert(names_[other]).second) continue;
      taken[other] = true;
      out.emplace_back(wave_[place], other);
      break;
    }
  return out;
}

SliceSearch::Pairs SliceSearch::next() {
  if (begins_)
    if (Pairs first = first_pairs(); !first.empty()) return first;
  while (true) {
    if (last_) measured({});  // one machine, without a link that could tell
    if (wave_.empty()) next_wave();
    if (wave_.empty()) return {};
    Pairs out;
    if (!is_small()) out = one_round();
    if (!out.empty()) return out;
    // With few machines the fastest link of all decides.
    last_ = true;
    if (!is_small() && wave_.size() > kMostPartners) wave_.resize(kMostPartners);
    for (size_t machine = 0; is_small() && machine < names_.size(); ++machine)
      for (size_t place = 0; !names_[machine].empty() && place < wave_.size(); ++place)
        out.emplace_back(wave_[place], machine);
    const Pairs each = tournament(wave_);
    out.insert(out.end(), each.begin(), each.end());
    if (!out.empty()) return out;
  }
}

void SliceSearch::measured(const std::vector<LinkRate>& rates) {
  double fastest = 0;
  for (LinkRate rate : rates) {
    if (rate.a == rate.b) rate.rate = std::min(rate.rate, kMostInMachine);
    fastest = std::max(fastest, rate.rate);
    rates_.push_back(rate);
  }
  const bool wrong = !all_ && fastest_ > 0 && fastest >= kApart * fastest_;
  fastest_ = std::max(fastest_, fastest);
  if (wrong) return forget();
  if (all_ && limit_ <= 0) limit_ = slice_limit(names_.size(), rates_);
  std::vector<std::string> found =
      last_ ? find_slices(names_, rates_, limit_, prefix_).names : join_slices(names_, rates_, limit_);
  for (const size_t machine : wave_) names_[machine] = found[machine];
  if (std::exchange(last_, false)) wave_.clear();
  std::erase_if(wave_, [&](size_t machine) { return !names_[machine].empty(); });
}

FoundSlices SliceSearch::found() const {
  FoundSlices out{names_, limit_};
  std::map<std::string, size_t> sizes;
  std::string largest = prefix_ + "1";
  for (const std::string& name : names_)
    if (!name.empty()) ++sizes[name];
  for (const std::string& name : names_)
    if (!name.empty() && sizes[name] > sizes[largest]) largest = name;
  for (std::string& name : out.names)
    if (name.empty()) name = largest;
  return out;
}

}  // namespace ostro::fleet
