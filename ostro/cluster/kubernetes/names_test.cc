// What Kubernetes takes as names and quantities.
#include "ostro/cluster/kubernetes/names.h"

#include <doctest/doctest.h>

namespace ostro::cluster {
namespace {

TEST_CASE("names that Kubernetes takes") {
  for (const char* name : {"a", "ostro-nano-2"}) CHECK(check_kubernetes_name("--name", name).ok());
  for (const std::string& name : {std::string(), std::string("Nano"), std::string("a_b"), std::string("-a"),
                                  std::string("a-"), std::string("2a"), std::string(46, 'a')})
    CHECK(!check_kubernetes_name("--name", name).ok());
}

TEST_CASE("names of claims, which may have dots") {
  for (const char* name : {"runs", "0", "team-a.runs.2"})
    CHECK(check_kubernetes_object("--claim", name, "claim").ok());
  for (const std::string& name : {std::string(), std::string("Runs"), std::string("a/b"), std::string("a..b"),
                                  std::string("-a"), std::string("a-"), std::string(254, 'a')})
    CHECK(!check_kubernetes_object("--claim", name, "claim").ok());
}

TEST_CASE("labels of nodes") {
  for (const char* key : {"zone", "topology.kubernetes.io/zone", "a.b/C_d.9"})
    CHECK_MESSAGE(check_kubernetes_label("--slices", key, "us-east1-b").ok(), key);
  for (const char* key : {"", "/zone", "a/b/c", "A/b", "-a", "a b"})
    CHECK_MESSAGE(!check_kubernetes_label("--slices", key, "west").ok(), key);
  for (const std::string& value : {std::string(), std::string("a b"), std::string("-"), std::string(64, 'a')})
    CHECK(!check_kubernetes_label("--slices", "zone", value).ok());
}

TEST_CASE("quantities that Kubernetes takes") {
  for (const char* text : {"16", "0.5", "500m", "64Gi", "1.5G", "1e9", "12E", "2E3"})
    CHECK_MESSAGE(check_kubernetes_quantity("--memory", text).ok(), text);
  for (const char* text :
       {"", "0", "0.0Gi", "0e5", "-1", "many", "16 Gi", "16gb", "16KiB", "1e", "e9", ".", "1Gi\n"})
    CHECK_MESSAGE(!check_kubernetes_quantity("--memory", text).ok(), text);
  const Status wrong = check_kubernetes_quantity("--cpus", "four");
  CHECK(wrong.error().message().find("--cpus: \"four\" is no quantity of Kubernetes") == 0);
}

}  // namespace
}  // namespace ostro::cluster
