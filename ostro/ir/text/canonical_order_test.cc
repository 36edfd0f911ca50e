// The canonical order does not know in which order ops, or the captures of a region, were emitted.
#include "ostro/ir/text/canonical_order.h"

#include <doctest/doctest.h>

#include <functional>

#include "ostro/ir/program/builder.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/ir/text/text.h"

namespace ostro::ir {
namespace {

const Shape kX{DType::f32, {{"embed", 4}}};

// Runs both, the second first when `swapped`: what a compiler may do to two arguments.
void in_some_order(bool swapped, const std::function<void()>& a, const std::function<void()>& b) {
  if (swapped) b();
  a();
  if (!swapped) b();
}

std::string ordered_text(Program p) {
  canonical_order(p.body);
  check_ok(verify(p));
  return print(p, {.canonical = true});
}

TEST_CASE("operands emitted in either order give one text") {
  auto text = [](bool swapped) {
    Program p;
    Builder b(p.body);
    const ValueId x = p.body.add_param(kX), y = p.body.add_param(kX);
    ValueId left = -1, right = -1;
    in_some_order(
        swapped, [&] { left = b.add(OpKind::neg, {b.add(OpKind::exp, {y})}); },
        [&] { right = b.add(OpKind::neg, {b.add(OpKind::exp, {x})}); });
    b.add(OpKind::abs, {x});  // dead
    p.body.results = {b.add(OpKind::sub, {left, right}), right};
    return ordered_text(p);
  };
  CHECK(text(false) == text(true));
  CHECK(text(false).find("abs") == std::string::npos);
}

// carry = carry + (k0 - k1) over 3 rounds, with k0 and k1 captured in either order, and a third one unused.
std::string scan_text(bool swapped) {
  Program p;
  Builder b(p.body);
  const ValueId x = p.body.add_param(kX), y = p.body.add_param(kX), z = p.body.add_param(kX);
  Block body;
  Builder inner(body);
  std::vector<ValueId> captured(3, -1), params;
  in_some_order(
      swapped, [&] { params.push_back(captured[0] = body.add_value(kX)); },
      [&] { params.push_back(captured[1] = body.add_value(kX)); });
  params.insert(params.begin() + 1, captured[2] = body.add_value(kX));
  body.params = params;
  const ValueId carry = body.add_param(kX);
  body.results = {inner.add(OpKind::add, {carry, inner.add(OpKind::sub, {captured[0], captured[1]})})};
  std::vector<ValueId> operands = swapped ? std::vector{y, z, x, x} : std::vector{x, z, y, x};
  p.body.results = b.add_n(OpKind::scan, std::move(operands),
                           {{"axis", std::string("layers")},
                            {"length", int64_t{3}},
                            {"consts", int64_t{3}},
                            {"carries", int64_t{1}},
                            {"reverse", int64_t{0}}},
                           {body});
  check_ok(verify(p));
  return ordered_text(p);
}

TEST_CASE("a loop's constants stand in the order of their first use; an unused one goes") {
  CHECK(scan_text(false) == scan_text(true));
  CHECK(scan_text(false).find("consts = 2") != std::string::npos);
}

TEST_CASE("captured operands of a cond stand in the order of their first use, earlier branches first") {
  auto text = [](bool swapped) {
    Program p;
    Builder b(p.body);
    const ValueId pred = p.body.add_param(scalar(DType::boolean)), x = p.body.add_param(kX),
                  y = p.body.add_param(kX), unused = p.body.add_param(kX);
    const size_t at_x = swapped ? 2 : 0, at_y = swapped ? 0 : 2;
    Block then, otherwise;
    for (Block* branch : {&then, &otherwise})
      for (int i = 0; i < 3; ++i) branch->add_param(kX);
    then.results = {Builder(then).add(OpKind::neg, {then.params[at_x]})};
    otherwise.results = {Builder(otherwise).add(OpKind::exp, {otherwise.params[at_y]})};
    std::vector<ValueId> operands{pred, x, unused, y};
    if (swapped) std::swap(operands[1], operands[3]);
    p.body.results = b.add_n(OpKind::cond, operands, {}, {then, otherwise});
    check_ok(verify(p));
    return ordered_text(p);
  };
  CHECK(text(false) == text(true));
}

TEST_CASE("ordering twice changes nothing, and a chain longer than the stack is no trouble") {
  Program p;
  Builder b(p.body);
  ValueId v = p.body.add_param(kX);
  for (int i = 0; i < 200'000; ++i) v = b.add(OpKind::neg, {v});
  p.body.results = {v};
  canonical_order(p.body);
  CHECK(p.body.ops.size() == 200'000);
  const std::string once = print(p, {.canonical = true});
  canonical_order(p.body);
  CHECK(print(p, {.canonical = true}) == once);
}

}  // namespace
}  // namespace ostro::ir
