#include "ostro/train/step/gradient_sums.h"

#include "ostro/base/check.h"
#include "ostro/base/profile.h"
#include "ostro/train/step/step.h"

namespace ostro::train {
namespace {

std::vector<ir::Shape> shapes_of(const GradientAdder::Buffers& arrays) {
  std::vector<ir::Shape> shapes;
  for (const runtime::Buffer& x : arrays) shapes.push_back(x.shape());
  return shapes;
}

}  // namespace

// Both programs overwrite their first inputs.
Result<runtime::Executable*> GradientAdder::program(Programs& programs, const std::vector<ir::Shape>& shapes,
                                                    ir::Program (*make)(const std::vector<ir::Shape>&)) {
  std::string key;
  for (const ir::Shape& shape : shapes) key += shape.str();
  auto& program = programs[key];
  if (program == nullptr) {
    ASSIGN_OR_RETURN(program, engine_.compile(make(shapes), add_options(shapes.size())));
  }
  return program.get();
}

Status GradientAdder::compile(const std::vector<ir::Shape>& shapes, bool rounds) {
  RETURN_IF_ERROR(program(adds_, shapes, add_program));
  if (rounds) RETURN_IF_ERROR(program(rounds_, shapes, round_program));
  return Status();
}

Result<GradientAdder::Buffers> GradientAdder::add(Buffers a, Buffers b) {
  if (a.empty()) return a;
  if (is_phase_) phase("tree add");
  ASSIGN_OR_RETURN(runtime::Executable * add, program(adds_, shapes_of(a), add_program));
  for (runtime::Buffer& x : b) a.push_back(std::move(x));
  return add->run(std::move(a));
}

Result<GradientAdder::Buffers> GradientAdder::round(Buffers a) {
  if (a.empty()) return a;
  if (is_phase_) phase("tree add");
  ASSIGN_OR_RETURN(runtime::Executable * round, program(rounds_, shapes_of(a), round_program));
  return round->run(std::move(a));
}

Status SubtreeSums::push(Subtree node, Buffers sum) {
  while (true) {
    if (is_rounded(leaves_, groups_, node)) {
      ASSIGN_OR_RETURN(sum, adder_.round(std::move(sum)));
    }
    if (sums_.empty() || !siblings(leaves_, sums_.back().first, node)) break;
    auto [left, left_sum] = std::move(sums_.back());
    sums_.pop_back();
    ASSIGN_OR_RETURN(sum, adder_.add(std::move(left_sum), std::move(sum)));
    node = {left.first, left.count + node.count};
  }
  sums_.emplace_back(node, std::move(sum));
  return Status();
}

SubtreeSums::Buffers SubtreeSums::root() {
  OSTRO_CHECK(sums_.size() == 1 && sums_[0].first == (Subtree{0, leaves_}),
              "{} sums instead of one over {} leaves: some leaves are missing", sums_.size(), leaves_);
  return std::move(sums_[0].second);
}

}  // namespace ostro::train
