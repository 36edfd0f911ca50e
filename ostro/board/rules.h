// check_rules: the rules of a board that need no program to run: start, end, tokenizer, data, evaluation
// text, constants, operations, memory. They read the record and the ledger of an entry.
#pragma once

#include "ostro/board/entry.h"
#include "ostro/board/evaluation.h"
#include "ostro/board/refusal.h"
#include "ostro/board/score_program.h"
#include "ostro/board/track.h"

namespace ostro::board {

// The rules that the chain alone decides.
void check_chain_rules(const Entry& entry, const Track& track, Refusals& out);

// Whether the tokenizer that lies in the record is there, and is the track's, where it is not the chain's.
void check_tokenizer_file(io::FileSystem& fs, const Entry& entry, const Track& track, Refusals& out);

// Whether a row of the entry's ledger is a document of the evaluation. Errors: those of reading.
Status check_evaluation_text(io::FileSystem& fs, const Entry& entry, const Evaluation& evaluation,
                             const EvaluationTokens& tokens, Refusals& out);

// Refuses operations that are more than a budget has, or that are no number. `what` has them.
void check_operations(Rule rule, const char* what, double flops, double budget, Refusals& out);

// The operations of a run: drawing the first weights, the reference of `pairs` preference pairs, and all
// steps. Infinity or no number for programs that have no honest count.
double operations_of(const audit::RecordedRun& run, int64_t pairs);

// The rows of the entry's data, as its ledger has them. Errors: those of reading.
Result<int64_t> rows_of_data(io::FileSystem& fs, const Entry& entry);

// What the programs can hold, and their operations. Programs that this one has traced from a configuration
// hold nothing: with `is_foreign` those of the training are looked at, too. `rows`: rows_of_data(). Sets
// `flops` to those of the training, 0 when they are no finite number.
void check_program_rules(const audit::RecordedRun& run, bool is_foreign, const ScoreProgram& score,
                         const Track& track, int64_t windows, int64_t rows, double& flops, Refusals& out);

// Whether a batch of the steps that were done fits into so many bytes.
void check_batch_memory(const audit::RecordedRun& run, int64_t bytes, Refusals& out);

// Whether each program, and each batch of the training, fits into so many bytes. Errors: those of estimating.
Status check_memory(runtime::Engine& engine, const audit::RecordedRun& run, const ScoreProgram& score,
                    int64_t bytes, Refusals& out);

}  // namespace ostro::board
