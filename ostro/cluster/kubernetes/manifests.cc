#include "ostro/cluster/kubernetes/manifests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

namespace ostro::cluster {
namespace {

using Object = nlohmann::ordered_json;

// Seconds from SIGTERM to SIGKILL. It ends at once, but waits up to a minute for a command that gives an
// alert.
constexpr int64_t kCoordinatorGrace = 90;
constexpr const char* kConfigFolder = "/etc/ostro";
constexpr const char* kConfigOfPod = "/etc/ostro/config.yaml";

// A key in quotes, where YAML would read another kind of value without them.
std::string yaml_key(const std::string& key) {
  constexpr std::array<std::string_view, 9> kWords = {"y",     "n",  "yes", "no",  "true",
                                                      "false", "on", "off", "null"};
  std::string small;
  for (const char c : key) small += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool plain = !key.empty() && std::isdigit(static_cast<unsigned char>(key[0])) == 0 &&
                     std::find(kWords.begin(), kWords.end(), small) == kWords.end();
  return plain ? key : Object(key).dump();
}

// Block YAML. A scalar of JSON is one of YAML; so are empty lists and maps.
void write_yaml(const Object& value, size_t indent, std::string& out) {
  const auto nested = [&](const Object& inner, size_t deeper) {
    if (inner.is_structured() && !inner.empty()) {
      out += "\n";
      write_yaml(inner, deeper, out);
    } else {
      out += " " + inner.dump() + "\n";
    }
  };
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      out += std::string(indent, ' ') + yaml_key(key) + ":";
      nested(inner, indent + 2);
    }
  } else {
    for (const Object& inner : value) {
      out += std::string(indent, ' ') + "-";
      nested(inner, indent + 2);
    }
  }
}

class Manifests {
 public:
  explicit Manifests(const KubernetesJob& job) : job_(job) {}

  std::vector<Manifest> all() const {
    std::vector<Manifest> out = {file("secret", secret(), true), file("config", config(), false),
                                 file("service", service(), false),
                                 file("coordinator", coordinator(), false)};
    // Jobs know nothing of each other: the places that may be lost are shared out to them.
    const int64_t spare = job_.workers - job_.min_workers;
    if (job_.slices.empty())
      out.push_back(file("workers", workers("workers", {"", job_.workers}, spare), false));
    int64_t before = 0;  // workers of earlier slices
    for (size_t i = 0; i < job_.slices.size(); ++i) {
      const std::string part = fmt::format("workers-{}", i);
      const int64_t until = before + job_.slices[i].workers;
      const int64_t share = spare * until / job_.workers - spare * before / job_.workers;
      out.push_back(file(part, workers(part, job_.slices[i], share), false));
      before = until;
    }
    return out;
  }

 private:
  Manifest file(const std::string& part, const Object& object, bool is_secret) const {
    std::string text;
    write_yaml(object, 0, text);
    return {fmt::format("{}-{}.yaml", job_.name, part), std::move(text), is_secret};
  }

  std::string name(const std::string& part) const { return job_.name + "-" + part; }

  Object labels(const char* part) const {
    return {{"app.kubernetes.io/name", "ostro"},
            {"app.kubernetes.io/instance", job_.name},
            {"app.kubernetes.io/component", part}};
  }

  Object begin(const char* version, const char* kind, const std::string& called, const char* part) const {
    Object object = {{"apiVersion", version}, {"kind", kind}};
    object["metadata"]["name"] = called;
    if (!job_.name_space.empty()) object["metadata"]["namespace"] = job_.name_space;
    object["metadata"]["labels"] = labels(part);
    return object;
  }

  Object secret() const {
    Object object = begin("v1", "Secret", job_.name, "secret");
    object["type"] = "Opaque";
    object["stringData"] = {{"OSTRO_JOB_SECRET", job_.secret}, {"OSTRO_METRICS_TOKEN", job_.metrics_token}};
    return object;
  }

  Object config() const {
    Object object = begin("v1", "ConfigMap", job_.name, "config");
    object["data"] = {{"config.yaml", job_.config}};
    return object;
  }

  // Without an address of its own: the name leads to the coordinator's pod, also before its first probe.
  Object service() const {
    Object object = begin("v1", "Service", name("coordinator"), "coordinator");
    object["spec"] = {{"clusterIP", "None"},
                      {"publishNotReadyAddresses", true},
                      {"selector", labels("coordinator")},
                      {"ports", Object::array({{{"name", "job"}, {"port", job_.port}},
                                               {{"name", "metrics"}, {"port", job_.metrics_port}}})}};
    return object;
  }

  Object from_secret(const char* key) const {
    return {{"name", key}, {"valueFrom", {{"secretKeyRef", {{"name", job_.name}, {"key", key}}}}}};
  }

  Object container(const char* called, const std::vector<std::string>& words) const {
    Object object = {{"name", called}, {"image", job_.image}};
    object["args"] = words;
    object["workingDir"] = job_.folder;
    object["env"] = Object::array({from_secret("OSTRO_JOB_SECRET")});
    if (!job_.credentials.empty())
      object["envFrom"] = Object::array({{{"secretRef", {{"name", job_.credentials}}}}});
    object["volumeMounts"] =
        Object::array({{{"name", "run"}, {"mountPath", job_.mount}},
                       {{"name", "config"}, {"mountPath", kConfigFolder}, {"readOnly", true}}});
    object["securityContext"] = {{"allowPrivilegeEscalation", false},
                                 {"capabilities", {{"drop", Object::array({"ALL"})}}}};
    return object;
  }

  Object pod(const char* part, int64_t grace, Object only_container) const {
    Object object;
    object["metadata"]["labels"] = labels(part);
    object["spec"] = {
        {"restartPolicy", "Never"},
        {"terminationGracePeriodSeconds", grace},
        {"enableServiceLinks", false},
        {"securityContext",
         {{"runAsUser", job_.user},
          {"runAsGroup", job_.user},
          {"fsGroup", job_.user},
          {"runAsNonRoot", true},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
        {"containers", Object::array({std::move(only_container)})},
        {"volumes",
         Object::array({volume_of_run(), {{"name", "config"}, {"configMap", {{"name", job_.name}}}}})}};
    return object;
  }

  Object volume_of_run() const {
    if (job_.claim.empty()) return {{"name", "run"}, {"emptyDir", Object::object()}};
    return {{"name", "run"}, {"persistentVolumeClaim", {{"claimName", job_.claim}}}};
  }

  static Object on_status(const char* action, const std::vector<int>& statuses) {
    return {{"action", action}, {"onExitCodes", {{"operator", "In"}, {"values", statuses}}}};
  }
  // A node that is drained or taken away is no failure.
  static Object on_disruption() {
    return {{"action", "Ignore"},
            {"onPodConditions", Object::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}};
  }

  // SIGTERM is no wish to stop the run: it also comes when the node is drained, or when probes fail. The
  // next pod goes on with the journal. A pod that ends otherwise than by a disruption counts as a failure.
  Object coordinator() const {
    Object only =
        container("coordinator",
                  {"coordinator", "--bind", job_.ipv6 ? "::" : "0.0.0.0", "--port", std::to_string(job_.port),
                   "--min_workers", std::to_string(job_.min_workers), "--max_workers",
                   std::to_string(job_.workers), "--replaced", "--config", kConfigOfPod});
    only["env"].push_back(from_secret("OSTRO_METRICS_TOKEN"));
    only["ports"] = Object::array({{{"name", "job"}, {"containerPort", job_.port}},
                                   {{"name", "metrics"}, {"containerPort", job_.metrics_port}}});
    const Object health = {{"path", "/health"}, {"port", "metrics"}};
    only["startupProbe"] = {{"httpGet", health}, {"periodSeconds", 2}, {"failureThreshold", 150}};
    only["readinessProbe"] = {{"httpGet", health}, {"periodSeconds", 10}};
    only["livenessProbe"] = {
        {"httpGet", health}, {"periodSeconds", 30}, {"timeoutSeconds", 10}, {"failureThreshold", 5}};
    only["resources"]["requests"] = {{"cpu", "100m"}, {"memory", "128Mi"}};
    Object object = begin("batch/v1", "Job", name("coordinator"), "coordinator");
    object["spec"] = {
        {"backoffLimit", job_.failures},
        {"podFailurePolicy",
         {{"rules", Object::array({on_disruption(), on_status("FailJob", {job_.if_interrupted})})}}},
        {"template", pod("coordinator", kCoordinatorGrace, std::move(only))}};
    return object;
  }

  Object workers(const std::string& part, const KubernetesSlice& slice, int64_t spare) const {
    std::vector<std::string> words = {
        "worker",    "--coordinator", fmt::format("{}:{}", name("coordinator"), job_.port),
        "--bind",    "$(POD_IP)",     "--config",
        kConfigOfPod};
    if (!slice.name.empty()) words.insert(words.end(), {"--slice", slice.name});
    Object only = container("worker", words);
    only["env"].push_back(
        {{"name", "POD_IP"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}});
    if (!job_.cpus.empty())
      only["env"].push_back(
          {{"name", "OSTRO_THREADS"},
           {"valueFrom", {{"resourceFieldRef", {{"resource", "limits.cpu"}, {"divisor", "1"}}}}}});
    Object limits = Object::object();
    if (!job_.cpus.empty()) limits["cpu"] = job_.cpus;
    if (!job_.memory.empty()) limits["memory"] = job_.memory;
    if (!job_.gpus.empty()) limits["nvidia.com/gpu"] = job_.gpus;
    if (!limits.empty()) only["resources"] = {{"requests", limits}, {"limits", limits}};
    Object pods = pod("worker", job_.grace, std::move(only));
    if (!slice.name.empty()) pods["spec"]["nodeSelector"] = {{job_.slice_label, slice.name}};
    Object object = begin("batch/v1", "Job", name(part), "worker");
    object["spec"] = {
        {"completionMode", "Indexed"},
        {"completions", slice.workers},
        {"parallelism", slice.workers},
        {"backoffLimitPerIndex", job_.failures},
        {"maxFailedIndexes", spare},
        {"podFailurePolicy",
         {{"rules", Object::array({on_disruption(), on_status("Ignore", {job_.if_lost, job_.if_left}),
                                   on_status("FailJob", {job_.if_interrupted})})}}},
        {"template", std::move(pods)}};
    return object;
  }

  const KubernetesJob& job_;
};

}  // namespace

std::vector<Manifest> kubernetes_manifests(const KubernetesJob& job) { return Manifests(job).all(); }

}  // namespace ostro::cluster
