#include "split/loader/mpi_imports.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <set>

#include "split/loader/dynamic_symbols.h"
#include "split/loader/library_search.h"

namespace fermata::split {
namespace {

std::string small(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

// "send" of MPI_Send, PMPI_Send, MPI_Send_c, mpi_send_, pmpi_send__; "mpix_comm_agree" of MPIX_Comm_agree; ""
// of everything else, also of MPI's variables, which have no small letter.
std::string function_of(const std::string& symbol) {
    bool fortran = !symbol.empty() && std::islower(static_cast<unsigned char>(symbol[0]));
    std::string name = small(symbol);
    if (name.starts_with("pmpi")) name.erase(0, 1);
    if (name.starts_with("mpi_"))
        name.erase(0, 4);
    else if (!name.starts_with("mpix_") && !name.starts_with("qmpi_"))
        return "";
    if (fortran) {
        if (!name.ends_with("_")) return "";
        while (name.ends_with("_")) name.pop_back();
    } else {
        if (std::none_of(symbol.begin(), symbol.end(), [](unsigned char c) { return std::islower(c); }))
            return "";
        if (name.ends_with("_c")) name.resize(name.size() - 2);
    }
    return name;
}

std::vector<DynamicSymbol> symbols_of(const std::string& path) {
    ElfFile file;
    return file.read(path).empty() ? dynamic_symbols(file) : std::vector<DynamicSymbol>();
}

// A function that nobody wrote has its generated, weak one, which answers the error.
std::set<std::string> unwritten_of(const std::string& front_dir) {
    std::set<std::string> names;
    for (const DynamicSymbol& symbol : symbols_of(front_dir + "/libfermata-front.so"))
        if (symbol.defined && symbol.weak && symbol.name.starts_with("fm_"))
            names.insert(small(symbol.name.substr(3)));
    return names;
}

}  // namespace

MpiImports mpi_imports(const ProgramCheck& check, const std::string& front_dir) {
    std::set<std::string> wanted, there, by_program;
    std::vector<std::string> files = check.libraries;
    files.push_back(check.binary);
    for (const std::string& file : files) {
        const bool bindings = file.substr(file.rfind('/') + 1).starts_with("libmpi");
        for (const DynamicSymbol& symbol : symbols_of(file)) {
            if (symbol.defined)
                there.insert(symbol.name);
            else if (!symbol.weak && !function_of(symbol.name).empty()) {
                wanted.insert(symbol.name);
                // MPI's own Fortran library imports all that MPI has, whatever the program calls of it.
                if (!bindings) by_program.insert(symbol.name);
            }
        }
    }
    for (const std::string& front : check.mpi_names)
        for (const DynamicSymbol& symbol : symbols_of(front_dir + "/" + front))
            if (symbol.defined) there.insert(symbol.name);
    const std::set<std::string> unwritten = unwritten_of(front_dir);
    MpiImports imports;
    for (const std::string& name : wanted) {
        imports.functions.push_back(name);
        if (there.count(name) == 0)
            imports.absent.push_back(name);
        else if (by_program.count(name) != 0 && unwritten.count(function_of(name)) != 0)
            imports.refused.push_back(name);
    }
    return imports;
}

namespace {
// Often macros of mpi.h.
bool converts_handles(const std::string& name) {
    for (const char* end : {"_c2f", "_f2c", "_fromint", "_toint"})
        if (name.ends_with(end)) return true;
    return false;
}
}  // namespace

MpiLibrary mpi_library_of(const std::string& lower, const std::string& front_dir) {
    MpiLibrary library;
    ElfFile file;
    if (!file.read(lower).empty()) return library;
    const char* more = std::getenv("LD_LIBRARY_PATH");
    LibrarySearch search(more != nullptr ? more : "");
    std::set<std::string> there;
    for (const std::string& name : file.needed) {
        if (!name.starts_with("libmpi.") && !name.starts_with("libmpich.")) continue;
        library.path = search.find(name, {&file});
        for (const DynamicSymbol& symbol : symbols_of(library.path))
            if (symbol.defined) there.insert(symbol.name);
    }
    if (there.empty()) return library;
    const std::set<std::string> unwritten = unwritten_of(front_dir);
    std::set<std::string> known;
    for (const DynamicSymbol& symbol : symbols_of(front_dir + "/libmpi_abi.so.1"))
        if (symbol.defined && symbol.name.starts_with("MPI_") && !function_of(symbol.name).empty() &&
            unwritten.count(function_of(symbol.name)) == 0 && !converts_handles(symbol.name))
            known.insert(symbol.name);
    library.known = known.size();
    std::set_difference(known.begin(), known.end(), there.begin(), there.end(),
                        std::back_inserter(library.lacking));
    return library;
}

}  // namespace fermata::split
