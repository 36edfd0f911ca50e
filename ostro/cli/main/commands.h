// commands: the table of commands. Each command has a file, x_command.cc; those of `ostro lab` are a room of
// their own. A command that is not finished is not in the table.
#pragma once

#include <span>
#include <string>

#include "ostro/shell/words/verbs.h"

namespace ostro::cli {

// The table, in the order in which help lists the commands.
std::span<const Command> commands();

// Returns the command that a word which is no command may mean ("report": "ostro inspect RUN --html FILE");
// empty if none is known.
std::string meant_command(const std::string& word);

int init_command(Args args);
int config_command(Args args);
int tokenizer_command(Args args);
int verify_command(Args args);
int publish_command(Args args);
int train_command(Args args);
int launch_command(Args args);
int coordinator_command(Args args);
int worker_command(Args args);
int status_command(Args args);
int watch_command(Args args);
int hash_command(Args args);
int fork_command(Args args);
int log_command(Args args);
int inspect_command(Args args);
int diff_command(Args args);
int eval_command(Args args);
int score_command(Args args);
int sample_command(Args args);
int serve_command(Args args);
int grad_command(Args args);
int import_command(Args args);
int export_command(Args args);
int check_command(Args args);
int check_cluster_command(Args args);
int simulate_command(Args args);
int program_command(Args args);
int data_command(Args args);
int selftest_command(Args args);
int devices_command(Args args);
int completion_command(Args args);
// A verb of launch.
int launch_ray_command(Args args);
int launch_ssh_command(Args args);
int launch_slurm_command(Args args);
int launch_kubernetes_command(Args args);
// Verbs of data.
int data_baseline_command(Args args);
int data_build_command(Args args);
int data_consolidate_command(Args args);
int data_diff_command(Args args);
int data_find_command(Args args);
int data_prove_command(Args args);
int data_check_command(Args args);
int data_verify_command(Args args);
int data_show_command(Args args);
int data_stats_command(Args args);

}  // namespace ostro::cli
