#include "ostro/products/choose_isa.h"

#include <doctest/doctest.h>

#include <string>

namespace ostro::kernels {
namespace {

TEST_CASE("isa: names, requests and the default") {
  for (machine::Isa isa : machine::kAllIsas) CHECK(machine::parse_isa(machine::isa_name(isa)) == isa);
  CHECK(!machine::parse_isa("mmx").has_value());
  CHECK(!choose_isa("mmx").ok());
  CHECK(machine::has_isa(machine::Isa::kGeneric));
  CHECK(machine::has_isa(choose_isa("").value()));
  for (machine::Isa isa : machine::kAllIsas) {
    const Result<machine::Isa> chosen = choose_isa(machine::isa_name(isa));
    CHECK(chosen.ok() == machine::has_isa(isa));
    if (chosen.ok()) CHECK(chosen.value() == isa);
  }
  MESSAGE("default: ", std::string(machine::isa_name(best_isa())));
}

}  // namespace
}  // namespace ostro::kernels
