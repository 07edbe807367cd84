// A renewal of the ranks' lower halves, as the user asks for it.
#pragma once

#include <string>
#include <vector>

namespace fermata::launch {

struct Renewal {
    std::vector<std::string> environment{};  // NAME=VALUE, over what the libraries had
    std::string mpi{};                       // as --mpi; "" = the library stays
    std::string mpiexec_args{};              // only what says variables
};

}  // namespace fermata::launch
