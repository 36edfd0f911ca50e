// run_agent: answers the questions of check_cluster on one machine, which has started it there by ssh. A
// question is a line with a JSON object, and so is its answer; {"error": TEXT} where it cannot be answered.
//
//   {"do": "facts"}                             what the machine, its program and its clock are
//   {"do": "selftest"}                          the hashes of the self-test (run/loop/selftest.h)
//   {"do": "device", "device": D}               whether an engine can be made there
//   {"do": "path", "path": P, "marker": M}      whether the file M is seen in the folder P, its free bytes,
//                                               whether its lock is held, and how fast a file is written
//   {"do": "variables", "set": {NAME: VALUE}}   what workers get to reach an object store (AWS_*, OSTRO_S3_*)
//   {"do": "store", "path": P, "marker": M}     whether a run can be written to the folder P at s3://: its
//                                               server, where the keys come from, whether M is seen there
//   {"do": "read", "path": P}                   whether P is there, or may be a name of the hub
//   {"do": "disk", "path": P, "marker": M}      whether the folder P can be made and written; its free bytes
//   {"do": "listen", "address": A, "key": K, "ports": R, "advertise": H}
//                                               listens for one connection, as a worker with these options
//                                               would (R and H may be ""); where others reach it
//   {"do": "send", "address": A, "port": N, "key": K, "bytes": B, "advice": T}
//                                               T is what helps when that host does not answer
//   {"do": "taken"}                             whether the connection came
#pragma once

#include <cstdio>

#include "ostro/context/context.h"

namespace ostro::cluster_check {

// Reads questions from `in` and writes answers to `out` until `in` ends. `version` is that of this program.
void run_agent(const Context& context, const std::string& version, std::FILE* in, std::FILE* out);

}  // namespace ostro::cluster_check
