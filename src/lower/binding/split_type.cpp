// Split types have numbers that go by the library's version. `--mpi PATH` may bring another version than the
// one whose mpi.h this is compiled against, so they are told by what the library says of itself.
#include <cstdio>
#include <cstring>

#include "lower/binding/constants.h"
#include "lower/binding/library.h"

namespace fermata::lower {
namespace {

#if defined(OPEN_MPI)

bool has_hardware_types() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0, major = 0;
    MPI_Get_library_version(text, &length);
    return std::sscanf(text, "Open MPI v%d.", &major) == 1 && major >= 5;
}

int own_number(int value) {
    static const bool hardware = has_hardware_types();
    if (value == mpi::FM_COMM_TYPE_HW_UNGUIDED) return hardware ? 12 : MPI_UNDEFINED;
    if (value == mpi::FM_COMM_TYPE_HW_GUIDED) return hardware ? 13 : MPI_UNDEFINED;
    return to_lib(split_type_values, value);
}

#else

// Beginning with MPI-4.1 (MPICH 4.2; so has Intel MPI 2021.19) 4 is the standard's and the neighbourhood is
// 5. Among older ones only MPICH 4.0 and 4.1 are known.
int own_number(int value) {
    struct Numbers {
        int guided = MPI_UNDEFINED, neighbourhood = kUnknownValue;
        Numbers() {
            char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
            int length = 0, version = 0, subversion = 0, major = 0, minor = 0;
            MPI_Get_library_version(text, &length);
            MPI_Get_version(&version, &subversion);
            const char* mpich = std::strstr(text, "MPICH Version:");
            if (mpich != nullptr) std::sscanf(mpich, "MPICH Version: %d.%d", &major, &minor);
            if (version > 4 || (version == 4 && subversion >= 1))
                guided = 4, neighbourhood = 5;
            else if (major == 4)
                neighbourhood = 4;
        }
    };
    static const Numbers numbers;
    if (value == mpi::FM_COMM_TYPE_RESOURCE_GUIDED) return numbers.guided;
    if (value == mpi::FM_COMM_TYPE_NEIGHBORHOOD) return numbers.neighbourhood;
    return to_lib(split_type_values, value);
}

#endif

}  // namespace

// A standard type that the library lacks names no resource: nobody is in such a communicator. Another
// library's own is an error.
int lib_split_type(int value) {
    if (value == mpi::FM_UNDEFINED) return MPI_UNDEFINED;
    const int number = own_number(value);
    const bool standard = value > 0 && value <= mpi::FM_COMM_TYPE_RESOURCE_GUIDED;
    return number == kUnknownValue && standard ? MPI_UNDEFINED : number;
}

}  // namespace fermata::lower
