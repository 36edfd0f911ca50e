// register_plan, record_beacon, withdraw, check_registration: what `ostro lab register` and `ostro lab
// beacon` do. One process at a time writes to a lab.
#pragma once

#include "ostro/experiment/registry/registry.h"
#include "ostro/lab/drive/driver.h"

namespace ostro::lab {

struct Registered {
  bool is_new = false;       // false: nothing has changed since the last time
  std::string registration;  // SHA-256 of the frozen text
  std::string head;          // hash of the registry's last line
  std::vector<std::string> changes, late;
  std::vector<std::string> forecasts;  // that were registered now: the step, and what it says
};

// Registers the plan as it is now, with the contents of its sources, and the forecasts that are done and not
// yet registered; signed by the key if there is one. Errors: nothing to register; a source that cannot be
// read; another key than before.
Result<Registered> register_plan(const Context& context, const Plan& plan, const bundle::SigningKey* key);

// Records a public value for the plan's registration; the same value again is no error. Errors: the plan is
// not registered as it is; there is another value; the journal has results of this registration already.
// Returns the hash of the registry's last line.
Result<std::string> record_beacon(const Context& context, const Plan& plan, const std::string& value,
                                  const bundle::SigningKey* key);

// Records why a registered hypothesis gets no outcome. Errors: it was never registered, or is withdrawn.
Result<std::string> withdraw(const Context& context, const Plan& plan, const std::string& hypothesis,
                             const std::string& reason, const bundle::SigningKey* key);

struct RegistrationCheck {
  std::vector<std::string> faults;     // registry_faults(), and what differs from the present plan
  std::vector<RegistryEntry> entries;  // when there is no fault
  // Registered hypotheses that no plan has any more, and that were not withdrawn.
  std::vector<std::string> dropped;
};
// `key` is a public key (PEM) that all entries must be signed by; empty: none.
Result<RegistrationCheck> check_registration(const Context& context, const Plan& plan,
                                             const std::string& key);

}  // namespace ostro::lab
