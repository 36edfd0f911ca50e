// Nests of random programs: values that say all that the text of a kernel depends on, and nothing else.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ostro/compile/passes/pass.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/compile/text/prelude.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/cpu/text/write_kernel.h"
#include "random_program.h"

namespace ostro {
namespace {

using compile::Nest;
using compile::NestHash;
using compile::NestKind;

constexpr uint64_t kPrograms = 200;

std::vector<Nest> nests_of(const ir::Program& program, bool fuse) {
  const auto optimised = compile::run_passes(program, {});
  REQUIRE(optimised.ok());
  const auto module = compile::lower(*optimised, {.fuse = fuse, .target = cpu::cpu_target()});
  REQUIRE(module.ok());
  return module->nests;
}

std::string text_of(const Nest& nest, const compile::Dialect& dialect) {
  return cpu::write_kernels(std::span(&nest, 1), dialect)[0].source;
}

// Every nest of the programs once, by its text form.
const std::map<std::string, Nest>& all_nests() {
  static const std::map<std::string, Nest> all = [] {
    std::map<std::string, Nest> found;
    for (uint64_t seed = 1; seed <= kPrograms; ++seed)
      for (const Nest& nest : nests_of(fuzz::random_case(seed).program, true))
        found.emplace(nest.str(), nest);
    return found;
  }();
  return all;
}

}  // namespace

TEST_CASE("a program that is made and lowered twice has the same nests, and others when ops stay apart") {
  int64_t apart = 0;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    const std::vector<Nest> a = nests_of(fuzz::random_case(seed).program, true),
                            b = nests_of(fuzz::random_case(seed).program, true);
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      CHECK((a[i] == b[i]));
      CHECK(a[i].str() == b[i].str());
      CHECK(NestHash()(a[i]) == NestHash()(b[i]));
    }
    apart += nests_of(fuzz::random_case(seed).program, false) != a ? 1 : 0;
  }
  CHECK(apart > static_cast<int64_t>(kPrograms / 2));
}

TEST_CASE("nests are equal exactly when their text forms are, and when the kernels written from them are") {
  std::vector<const Nest*> nests;
  std::map<std::string, std::string> nest_of_kernel;
  for (const auto& [text, nest] : all_nests()) {
    nests.push_back(&nest);
    const auto [it, fresh] = nest_of_kernel.emplace(text_of(nest, compile::gnu_dialect()), text);
    CHECK_MESSAGE(fresh, "one kernel of two nests:\n", it->second, "and\n", text);
  }
  int64_t equal = 0;
  for (size_t i = 0; i < nests.size(); ++i)
    for (size_t j = 0; j < i; ++j) equal += *nests[i] == *nests[j] ? 1 : 0;
  CHECK(equal == 0);
  CHECK(nests.size() > 500);
}

TEST_CASE("another decision is another nest, whichever it is") {
  // Each changes one decision of a nest, or returns false where there is none of that kind.
  const std::map<std::string, std::function<bool(Nest&)>> changes = {
      {"flat rather than in rows",
       [](Nest& n) { return n.kind == NestKind::kRows && (n.kind = NestKind::kFlat, true); }},
      {"one outer loop less", [](Nest& n) { return !n.outer.empty() && (n.outer.pop_back(), true); }},
      {"a longer inner loop",
       [](Nest& n) { return n.inner && *n.inner != compile::kGivenSize && (++*n.inner, true); }},
      {"no inner loop", [](Nest& n) { return n.inner && (n.inner.reset(), true); }},
      {"a longer sum", [](Nest& n) { return !n.summed.empty() && (++n.summed[0], true); }},
      {"a larger tile", [](Nest& n) { return n.tile > 0 && (n.tile *= 2, true); }},
      {"another stride",
       [](Nest& n) { return !n.accesses[0].strides.empty() && (++n.accesses[0].strides.back(), true); }},
      {"a store for a load", [](Nest& n) { return n.accesses[0].store = !n.accesses[0].store, true; }},
      {"another dtype in memory",
       [](Nest& n) {
         return n.accesses[0].dtype == ir::DType::f32 && (n.accesses[0].dtype = ir::DType::bf16, true);
       }},
      {"another constant", [](Nest& n) { return !n.literals.empty() && (n.literals[0].bits ^= 1, true); }},
      {"another op",
       [](Nest& n) { return n.ops[0].kind == ir::OpKind::add && (n.ops[0].kind = ir::OpKind::sub, true); }},
      {"another operand",
       [](Nest& n) {
         auto& operands = n.ops.back().operands;
         return operands.size() > 1 && operands[0] != operands[1] && (operands[0] = operands[1], true);
       }},
      {"a value a row", [](Nest& n) { return n.ops[0].row = !n.ops[0].row, true; }},
      {"stored elsewhere", [](Nest& n) { return ++n.ops.back().store, true; }},
      {"a value is saved for later passes", [](Nest& n) { return n.ops[0].saved = 0, true; }},
      {"an op leaves a pass",
       [](Nest& n) { return !n.passes[0].ops.empty() && (n.passes[0].ops.pop_back(), true); }},
      {"stored in no pass",
       [](Nest& n) { return !n.passes[0].stores.empty() && (n.passes[0].stores.pop_back(), true); }},
      {"a reduction leaves a pass",
       [](Nest& n) { return !n.passes[0].reductions.empty() && (n.passes[0].reductions.clear(), true); }},
      {"row values in another pass",
       [](Nest& n) {
         if (n.passes.back().row_ops.empty()) return false;
         n.passes[0].row_ops.push_back(n.passes.back().row_ops.back());
         n.passes.back().row_ops.pop_back();
         return n.passes.size() > 1;
       }},
      {"one pass more", [](Nest& n) { return n.passes.emplace_back(), true; }},
  };
  std::map<std::string, int64_t> tried;
  for (const auto& [text, nest] : all_nests())
    for (const auto& [name, change] : changes) {
      Nest other = nest;
      if (!change(other)) continue;
      ++tried[name];
      CHECK_MESSAGE((other != nest), name, ":\n", text);
      CHECK_MESSAGE(other.str() != text, name, ":\n", text);
    }
  for (const auto& [name, change] : changes) CHECK_MESSAGE(tried[name] > 0, name, " was never tried");
}

TEST_CASE("all kinds of nests come up, and plain text keeps to ISO C") {
  std::set<NestKind> kinds;
  std::string plain = compile::prelude_text(compile::plain_dialect());
  std::string gnu = compile::prelude_text(compile::gnu_dialect());
  for (const auto& [text, nest] : all_nests()) {
    kinds.insert(nest.kind);
    plain += text_of(nest, compile::plain_dialect());
    gnu += text_of(nest, compile::gnu_dialect());
  }
  CHECK(kinds.size() == 3);
  for (const char* word : {"__", "_Pragma", "#pragma", "asm", "builtin"}) {
    CHECK_MESSAGE(plain.find(word) == std::string::npos, word);
    if (std::string(word) != "#pragma") CHECK_MESSAGE(gnu.find(word) != std::string::npos, word);
  }
}

}  // namespace ostro
