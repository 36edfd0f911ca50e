// check_kubernetes_name and others: whether Kubernetes takes a text as a name or a quantity.
//
// `what` begins the errors, which are kInvalidArgument: the option that the text is of. Pure functions.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::cluster {

// Of an object, or a namespace: small letters, digits and hyphens, a letter first, at most 45.
Status check_kubernetes_name(const std::string& what, const std::string& name);

// Of an object that is there, whose kind is in the error: such parts with dots between them, also with a
// digit first, at most 253.
Status check_kubernetes_object(const std::string& what, const std::string& name, const std::string& kind);

// Of a label of nodes: the key, with a prefix and '/' in front where it has one, and a value.
Status check_kubernetes_label(const std::string& what, const std::string& key, const std::string& value);

// A positive number with one of Kubernetes' suffixes: "16", "0.5", "500m", "64Gi", "1e9".
Status check_kubernetes_quantity(const std::string& what, const std::string& text);

}  // namespace ostro::cluster
