#include "ostro/fleet/exchange/gradient_sums.h"

#include "ostro/base/check.h"
#include "ostro/base/profile.h"
#include "ostro/train/step/step.h"

namespace ostro::fleet {

Result<GradientAdder::Buffers> GradientAdder::add(Buffers a, Buffers b) {
  if (a.empty()) return a;
  if (is_phase_) phase("tree add");
  std::vector<ir::Shape> shapes;
  std::string key;
  for (const runtime::Buffer& x : a) key += shapes.emplace_back(x.shape()).str();
  auto& program = programs_[key];
  if (program == nullptr) {
    ASSIGN_OR_RETURN(program, engine_.compile(train::add_program(shapes), train::add_options(shapes.size())));
  }
  for (runtime::Buffer& x : b) a.push_back(std::move(x));
  return program->run(std::move(a));
}

Status SubtreeSums::push(train::Subtree node, Buffers sum) {
  while (!sums_.empty() && train::siblings(leaves_, sums_.back().first, node)) {
    auto [left, left_sum] = std::move(sums_.back());
    sums_.pop_back();
    ASSIGN_OR_RETURN(sum, adder_.add(std::move(left_sum), std::move(sum)));
    node = {left.first, left.count + node.count};
  }
  sums_.emplace_back(node, std::move(sum));
  return Status();
}

SubtreeSums::Buffers SubtreeSums::root() {
  OSTRO_CHECK(sums_.size() == 1 && sums_[0].first == (train::Subtree{0, leaves_}),
              "{} sums instead of one over {} leaves: some leaves are missing", sums_.size(), leaves_);
  return std::move(sums_[0].second);
}

}  // namespace ostro::fleet
