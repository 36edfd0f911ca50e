// kubernetes_manifests: the objects of Kubernetes that train one run: a Job for the coordinator, with a
// Service by which workers find it, an Indexed Job for the workers (or for those of each slice), a ConfigMap
// and a Secret.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ostro::cluster {

// Workers of one slice, which run on the nodes that have its name as the value of a label.
struct KubernetesSlice {
  std::string name;
  int64_t workers = 1;
};

struct KubernetesJob {
  std::string name;        // begins the names of all objects
  std::string name_space;  // "": that of kubectl's context
  std::string image;       // whose entry point is ostro
  std::string config;      // the resolved configuration, as YAML
  std::string secret, metrics_token;
  std::string claim;  // a PersistentVolumeClaim that all pods may write; "": each has a volume of its own
  std::string mount;  // the folder at which they see it
  std::string credentials;  // a Secret whose keys are further variables of all pods; "": none
  std::string folder;       // in which the processes run, and where relative paths of the configuration begin
  int64_t workers = 1, min_workers = 1;
  std::vector<KubernetesSlice> slices = {};  // each has a Job; empty: one Job for all workers
  std::string slice_label = {};              // of nodes
  int64_t port = 4711, metrics_port = 9500;
  bool ipv6 = false;      // pods have addresses of IPv6
  int64_t failures = 10;  // of a worker's place, after which it is given up; and of the coordinator
  int64_t grace = 600;    // seconds from SIGTERM to SIGKILL of a worker
  int64_t user = 1000;    // of the processes, and their group
  // The exit statuses of a worker that was stopped with the run, that lost its place, and that has left.
  int if_interrupted = 0, if_lost = 0, if_left = 0;
  std::string cpus, memory, gpus;  // of a worker, as Kubernetes writes quantities; "": not asked for
};

struct Manifest {
  std::string file;  // its name, "ostro-nano-workers.yaml"
  std::string text;  // YAML; every scalar is written as in JSON
  bool is_secret = false;
};

// All texts of the job must be UTF-8.
std::vector<Manifest> kubernetes_manifests(const KubernetesJob& job);

}  // namespace ostro::cluster
