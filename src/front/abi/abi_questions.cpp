// MPI-5.0's questions about the ABI, and what a Fortran compiler tells of itself. Compiled once per ABI.
//
// The libraries below know gfortran's types only: LOGICAL of 4 bytes with 0 and 1, INTEGER and REAL of 4
// bytes. So these are fixed; a program that tells the same before MPI_Init is right, any other gets
// MPI_ERR_ABI, as all do afterwards (MPICH 5.0.2).
#include <string_view>

#include FERMATA_ABI_HEADER
#include "front/abi/adapters.h"
#include "front/abi/special.h"

using namespace fermata::abi;

namespace {

struct Fact {
    const char* key;
    const char* value;
};
constexpr Fact kAddresses[] = {{"mpi_aint_size", "8"}, {"mpi_count_size", "8"}, {"mpi_offset_size", "8"}};
constexpr Fact kSizes[] = {{"mpi_logical_size", "4"},
                           {"mpi_integer_size", "4"},
                           {"mpi_real_size", "4"},
                           {"mpi_double_precision_size", "8"}};
constexpr struct {
    const char* key;
    Datatype type;
} kOptional[] = {{"mpi_logical1_supported", FM_LOGICAL1},
                 {"mpi_logical2_supported", FM_LOGICAL2},
                 {"mpi_logical4_supported", FM_LOGICAL4},
                 {"mpi_logical8_supported", FM_LOGICAL8},
                 {"mpi_logical16_supported", FM_LOGICAL16},
                 {"mpi_integer1_supported", FM_INTEGER1},
                 {"mpi_integer2_supported", FM_INTEGER2},
                 {"mpi_integer4_supported", FM_INTEGER4},
                 {"mpi_integer8_supported", FM_INTEGER8},
                 {"mpi_integer16_supported", FM_INTEGER16},
                 {"mpi_real2_supported", FM_REAL2},
                 {"mpi_real4_supported", FM_REAL4},
                 {"mpi_real8_supported", FM_REAL8},
                 {"mpi_real16_supported", FM_REAL16},
                 {"mpi_complex4_supported", FM_COMPLEX4},
                 {"mpi_complex8_supported", FM_COMPLEX8},
                 {"mpi_complex16_supported", FM_COMPLEX16},
                 {"mpi_complex32_supported", FM_COMPLEX32},
                 {"mpi_double_complex_supported", FM_DOUBLE_COMPLEX}};

constexpr char kTrue[4] = {1}, kFalse[4] = {};

template <int n>
int set_all(Info info, const Fact (&facts)[n]) {
    int rc = FM_SUCCESS;
    for (const Fact& fact : facts)
        if (rc == FM_SUCCESS) rc = fm_Info_set(info, fact.key, fact.value);
    return rc;
}

int wrong(const char* function) { return out_errclass(fm_raise(Kind::none, 0, FM_ERR_ABI, function)); }

bool too_late() {
    int initialized = 0;
    fm_Initialized(&initialized);
    return initialized != 0;
}

}  // namespace

// A library of its own ABI has no version of the standard's: MPICH 5 says -1 there, and mpi4py's wheels go by
// it.
FRONT_API int PMPI_Abi_get_version(int* major, int* minor) {
    constexpr bool standard = std::string_view(FERMATA_ABI_NAME) == "standard";
    NEEDS(major, "MPI_Abi_get_version");
    NEEDS(minor, "MPI_Abi_get_version");
    *major = standard ? 1 : -1;
    *minor = standard ? 0 : -1;
    return 0;
}
ALIAS(int, Abi_get_version, int*, int*);

FRONT_API int PMPI_Abi_get_info(A_Info* info) {
    NEEDS(info, "MPI_Abi_get_info");
    Info made{};
    int rc = fm_Info_create(&made);
    if (rc == FM_SUCCESS) rc = set_all(made, kAddresses);
    if (rc == FM_SUCCESS) *info = out_Info(made);
    return out_errclass(rc);
}
ALIAS(int, Abi_get_info, A_Info*);

FRONT_API int PMPI_Abi_get_fortran_info(A_Info* info) {
    NEEDS(info, "MPI_Abi_get_fortran_info");
    Info made{};
    int rc = fm_Info_create(&made);
    if (rc == FM_SUCCESS) rc = set_all(made, kSizes);
    for (const auto& one : kOptional)
        if (rc == FM_SUCCESS) rc = fm_Info_set(made, one.key, fm_type_is_there(one.type) ? "true" : "false");
    if (rc == FM_SUCCESS) *info = out_Info(made);
    return out_errclass(rc);
}
ALIAS(int, Abi_get_fortran_info, A_Info*);

FRONT_API int PMPI_Abi_set_fortran_info(A_Info info) {
    if (too_late()) return wrong("MPI_Abi_set_fortran_info");
    for (const Fact& fact : kSizes) {
        char value[FM_MAX_INFO_VAL] = {};
        int length = sizeof value, there = 0;
        if (int rc = fm_Info_get_string(in_Info(info), fact.key, &length, value, &there))
            return out_errclass(rc);
        if (there != 0 && std::string_view(value) != fact.value) return wrong("MPI_Abi_set_fortran_info");
    }
    return 0;
}
ALIAS(int, Abi_set_fortran_info, A_Info);

FRONT_API int PMPI_Abi_get_fortran_booleans(int size, void* yes, void* no, int* is_set) {
    NEEDS(yes, "MPI_Abi_get_fortran_booleans");
    NEEDS(no, "MPI_Abi_get_fortran_booleans");
    NEEDS(is_set, "MPI_Abi_get_fortran_booleans");
    if (size != sizeof kTrue) return wrong("MPI_Abi_get_fortran_booleans");
    memcpy(yes, kTrue, sizeof kTrue);
    memcpy(no, kFalse, sizeof kFalse);
    *is_set = 1;
    return 0;
}
ALIAS(int, Abi_get_fortran_booleans, int, void*, void*, int*);

FRONT_API int PMPI_Abi_set_fortran_booleans(int size, const void* yes, const void* no) {
    if (too_late() || size != sizeof kTrue || memcmp(yes, kTrue, sizeof kTrue) != 0 ||
        memcmp(no, kFalse, sizeof kFalse) != 0)
        return wrong("MPI_Abi_set_fortran_booleans");
    return 0;
}
ALIAS(int, Abi_set_fortran_booleans, int, const void*, const void*);
