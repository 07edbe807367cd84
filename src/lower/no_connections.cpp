#include "lower/no_connections.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "lower/binding/binding.h"
#include "lower/services.h"

namespace fermata::lower {
namespace {

bool told;

template <auto kEntry>
struct Watched;
template <typename... Arguments, int (*mpi::Table::*kEntry)(Arguments...)>
struct Watched<kEntry> {
    static inline const char* name;
    static int call(Arguments... arguments) {
        const int code = (binding_table().*kEntry)(arguments...);
        if (code != 0 && !__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
            the_bridge()->warn((std::string(name) +
                                ": Fermata's own launcher connects no processes: start the job with "
                                "--launcher mpiexec")
                                   .c_str());
        return code;
    }
    static void into(mpi::Table& table, const char* function) {
        name = function;
        table.*kEntry = call;
    }
};

}  // namespace

const mpi::Table& table_of_launcher() {
    const char* launcher = std::getenv("FERMATA_LAUNCHER");
    if (launcher == nullptr || std::strcmp(launcher, "own") != 0) return binding_table();
    static mpi::Table table = binding_table();
    Watched<&mpi::Table::Comm_spawn>::into(table, "MPI_Comm_spawn");
    Watched<&mpi::Table::Comm_spawn_multiple>::into(table, "MPI_Comm_spawn_multiple");
    Watched<&mpi::Table::Comm_accept>::into(table, "MPI_Comm_accept");
    Watched<&mpi::Table::Comm_connect>::into(table, "MPI_Comm_connect");
    Watched<&mpi::Table::Comm_join>::into(table, "MPI_Comm_join");
    Watched<&mpi::Table::Open_port>::into(table, "MPI_Open_port");
    return table;
}

}  // namespace fermata::lower
