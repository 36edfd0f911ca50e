#include "ostro/kernels/products/choose_isa.h"

#include <doctest/doctest.h>

#include <string>

namespace ostro::cpu {
namespace {

TEST_CASE("isa: names, requests and the default") {
  for (Isa isa : kAllIsas) CHECK(parse_isa(isa_name(isa)) == isa);
  CHECK(!parse_isa("mmx").has_value());
  CHECK(!choose_isa("mmx").ok());
  CHECK(has_isa(Isa::kGeneric));
  CHECK(has_isa(choose_isa("").value()));
  for (Isa isa : kAllIsas) {
    const Result<Isa> chosen = choose_isa(isa_name(isa));
    CHECK(chosen.ok() == has_isa(isa));
    if (chosen.ok()) CHECK(chosen.value() == isa);
  }
  MESSAGE("default: ", std::string(isa_name(best_isa())));
}

}  // namespace
}  // namespace ostro::cpu
