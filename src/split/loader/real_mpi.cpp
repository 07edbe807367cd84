#include "split/loader/real_mpi.h"

#include <algorithm>

#include "split/loader/dynamic_symbols.h"
#include "split/loader/mpi_name.h"

namespace fermata::split {
namespace {

bool implements_mpi(const std::vector<DynamicSymbol>& symbols) {
    return std::any_of(symbols.begin(), symbols.end(),
                       [](const DynamicSymbol& one) { return one.defined && one.name == kOnlyInMpi; });
}

bool is_front(const ElfFile& library) {
    return std::find(library.needed.begin(), library.needed.end(), "libfermata-front.so") !=
           library.needed.end();
}

}  // namespace

bool is_real_mpi(const ElfFile& library) {
    return named_like_mpi(library.soname.c_str()) && !is_front(library) &&
           implements_mpi(dynamic_symbols(library));
}

bool has_mpi_inside(const ElfFile& program) {
    return implements_mpi(dynamic_symbols(program)) || implements_mpi(all_symbols(program));
}

}  // namespace fermata::split
