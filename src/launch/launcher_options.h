// Options of the libraries' own mpiexec and of Slurm's srun, as people put them where they put Fermata's.
// Which launcher knows which, and how many words follow, is a table.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fermata::launch {

// Words that follow `word` ("-host", "--mca", "-host=a"), when it is an option of some launcher.
std::optional<unsigned> words_after_launcher_option(const std::string& word);

// Throws Error (exit code 2) with the first of these options that this launcher ("openmpi", "mpich": the
// library's mpiexec; "srun") does not know and another one does. `words`: options with what follows each.
void check_launcher_options(const std::string& launcher, const std::vector<std::string>& words);
// Whether this launcher knows them all.
bool are_options_of(const std::string& launcher, const std::vector<std::string>& words);

// Where the launcher starts the ranks, when these words (with those of --mpiexec-args) say so; else empty.
std::string working_directory_of(const std::vector<std::string>& words);

// srun's options one by one, as "--name=value" or "--name" where there is a long name: of "-lN2", "-n 4" and
// the beginnings of names that getopt takes ("--ntask 4"). Other words stay as they are.
std::vector<std::string> srun_words(const std::vector<std::string>& words);

// Words of a string as a shell splits them: blanks, '…', "…", backslash.
std::vector<std::string> split_words(const std::string& text);

}  // namespace fermata::launch
