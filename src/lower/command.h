// This header reads the words with which the launcher starts a lower half: which program is to run, by what
// name.
//
//     [--argv0 NAME] -- PROGRAM ARGUMENTS…
//     --parts 1:3,4:5 WORDS…      of several programs: the first rank's are the first 3 words, the next 4
//                                 ranks' the 5 behind them, each as above
#pragma once

#include <string>
#include <vector>

namespace fermata::lower {

struct Command {
    std::string program;  // "" at a restart
    std::vector<std::string> arguments;
    std::string argv0;      // what the program is told as its name; "" = PROGRAM
    std::string front_dir;  // beside the libexec folder: lib/fermata/fronts
    int number = -1;        // which of the job's programs it is, from 0; -1: the launcher has not told us
};

// Where this program lies.
std::string own_directory();

// `rank`: what the launcher calls this process, -1 when it does not say. Throws Error when no part is this
// rank's.
Command command_in(std::vector<std::string> words, int rank);

}  // namespace fermata::lower
