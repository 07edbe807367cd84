#include "split/loader/mpi_imports.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "split/loader/dynamic_symbols.h"

namespace fermata::split {
namespace {

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

// "send" of MPI_Send, PMPI_Send, MPI_Send_c, mpi_send_, pmpi_send__; "" of everything else, also of MPI's
// variables, which have no small letter.
std::string function_of(const std::string& symbol) {
    bool fortran = !symbol.empty() && std::islower(static_cast<unsigned char>(symbol[0]));
    std::string name = lower(symbol);
    if (name.starts_with("pmpi_")) name.erase(0, 1);
    if (!name.starts_with("mpi_")) return "";
    name.erase(0, 4);
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

}  // namespace

MpiImports mpi_imports(const ProgramCheck& check, const std::string& front_dir) {
    std::set<std::string> wanted, there;
    std::vector<std::string> files = check.libraries;
    files.push_back(check.binary);
    for (const std::string& file : files)
        for (const DynamicSymbol& symbol : symbols_of(file)) {
            if (symbol.defined)
                there.insert(symbol.name);
            else if (!symbol.weak && !function_of(symbol.name).empty())
                wanted.insert(symbol.name);
        }
    for (const std::string& front : check.mpi_names)
        for (const DynamicSymbol& symbol : symbols_of(front_dir + "/" + front))
            if (symbol.defined) there.insert(symbol.name);
    // A function that nobody wrote has its generated, weak one, which answers the error.
    std::set<std::string> unwritten;
    for (const DynamicSymbol& symbol : symbols_of(front_dir + "/libfermata-front.so"))
        if (symbol.defined && symbol.weak && symbol.name.starts_with("fm_"))
            unwritten.insert(lower(symbol.name.substr(3)));
    MpiImports imports;
    for (const std::string& name : wanted) {
        imports.functions.push_back(name);
        if (there.count(name) == 0)
            imports.absent.push_back(name);
        else if (unwritten.count(function_of(name)) != 0)
            imports.refused.push_back(name);
    }
    return imports;
}

}  // namespace fermata::split
