// check_kubernetes_name and others: whether Kubernetes takes a text as a name or a quantity.
//
// `what` begins the errors, which are kInvalidArgument: the option that the text is of. Pure functions.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::cluster {

// Of an object, or a namespace: small letters, digits and hyphens, a letter first, at most 45.
Status check_kubernetes_name(const std::string& what, const std::string& name);

// Of a PersistentVolumeClaim that is there: such parts with dots between them, also with a digit first, at
// most 253.
Status check_kubernetes_claim(const std::string& what, const std::string& name);

// A positive number with one of Kubernetes' suffixes: "16", "0.5", "500m", "64Gi", "1e9".
Status check_kubernetes_quantity(const std::string& what, const std::string& text);

}  // namespace ostro::cluster
