// Whether a store on disk is the one that a configuration asks for.
#pragma once

#include <string>
#include <vector>

#include "ostro/data/ledger/ledger.h"
#include "ostro/data/ledger/source_hashes.h"

namespace ostro::data {

// "text", "prebuilt", ...: the type in a format of Preprocessing. Empty where it has none.
std::string row_type(const std::string& format);

// Preprocessing alone: what reading a store needs. `cache_dir` names it in the error.
Status check_preprocessing(const std::string& cache_dir, const Preprocessing& store,
                           const Preprocessing& wanted);

// The same of a store that is used in place: what its rows were made from and which of them are held out is
// its own business, as long as they are of the kind that is wanted.
Status check_preprocessing_in_place(const std::string& cache_dir, const Preprocessing& store,
                                    Preprocessing wanted);

// The files of a finished store against those that are there now, by content: where path, size and time are
// as recorded the content is taken to be, else its hash is asked for. Paths alone do not matter, order does.
// Gives the files that the store lacks, in order: those behind its own in data.train_urls, then in
// data.validation_urls. Any other difference is an error.
Result<std::vector<SourceFile>> new_files(SourceHashes& hashes, const std::string& cache_dir,
                                          const std::vector<FileLedger>& store,
                                          const std::vector<SourceFile>& sources);

// The same where none may be new.
Status check_files(SourceHashes& hashes, const std::string& cache_dir, const std::vector<FileLedger>& store,
                   const std::vector<SourceFile>& sources);

// The same for an unfinished store, whose sources must not have changed at all.
Status check_sources(const std::string& cache_dir, const std::vector<SourceFile>& store,
                     const std::vector<SourceFile>& sources);

// That no malformed row was left out, unless `skip_bad_rows` (data.on_bad_row) allows it: a run names the
// option in its genesis, and with `error` there its store could not be built from its texts.
Status check_skipped(const std::string& cache_dir, const std::vector<FileLedger>& store, bool skip_bad_rows);

}  // namespace ostro::data
