#include "split/loader/program.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <set>

#include "files/place.h"
#include "split/loader/dynamic_symbols.h"
#include "split/loader/elf_file.h"
#include "split/loader/library_search.h"
#include "split/loader/starters.h"

extern char** environ;

namespace fermata::split {
namespace {

constexpr int kScriptDepth = 4;  // as the kernel's (fs/exec.c, exec_binprm)

std::string variable(char* const* environment, const char* name) {
    size_t length = std::strlen(name);
    for (char* const* e = environment ? environment : environ; e && *e; ++e)
        if (std::strncmp(*e, name, length) == 0 && (*e)[length] == '=') return *e + length + 1;
    return "";
}

bool regular(const std::string& path) {
    struct stat s;
    return stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode);
}

std::string absolute(const std::string& path) {
    if (!path.empty() && path[0] == '/') return path;
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here)) return path;
    std::string rest = path;
    while (rest.starts_with("./")) rest.erase(0, 2);
    return std::string(here) + "/" + rest;
}

// As execvp: names without a slash are searched in PATH, the first executable regular file wins.
std::string search_path(const std::string& name, char* const* environment, std::string& error) {
    if (name.empty()) {
        error = "no program was given";
        return "";
    }
    if (name.find('/') != std::string::npos) return absolute(name);
    std::string list = variable(environment, "PATH");
    if (list.empty()) list = "/bin:/usr/bin";
    std::string refused;
    for (size_t at = 0; at <= list.size();) {
        size_t end = list.find(':', at);
        if (end == std::string::npos) end = list.size();
        std::string directory = list.substr(at, end - at);
        at = end + 1;
        std::string candidate = absolute((directory.empty() ? "." : directory) + "/" + name);
        if (!regular(candidate)) continue;
        if (access(candidate.c_str(), X_OK) == 0) return candidate;
        if (refused.empty()) refused = candidate;
    }
    if (!refused.empty())
        error = refused + " is not executable: chmod +x it";
    else if (regular(name))
        error = "program " + name + " was not found in PATH; the one in this directory is ./" + name;
    else
        error = "program " + name + " was not found in PATH";
    return "";
}

std::string why_not_runnable(const std::string& path) {
    struct stat s;
    if (stat(path.c_str(), &s) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) return "program " + path + " does not exist";
        return "program " + path + " cannot be reached: " + std::strerror(errno);
    }
    if (S_ISDIR(s.st_mode)) return path + " is a directory, not a program";
    if (!S_ISREG(s.st_mode)) return path + " is not a regular file";
    if (access(path.c_str(), X_OK) != 0) return path + " is not executable: chmod +x it";
    return "";
}

// Finds the rights that the kernel gives with the file, and that the program under Fermata's loader would not
// have.
std::string rights_lost(const std::string& path) {
    struct stat s;
    struct statvfs place;
    if (stat(path.c_str(), &s) != 0) return "";
    if (statvfs(path.c_str(), &place) == 0 && (place.f_flag & ST_NOSUID)) return "";
    const char* which = nullptr;
    if ((s.st_mode & S_ISUID) && s.st_uid != geteuid())
        which = "setuid";
    else if ((s.st_mode & S_ISGID) && (s.st_mode & S_IXGRP) && s.st_gid != getegid())
        which = "setgid";
    else if (geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
        which = "a program with file capabilities";  // root has them anyway
    if (!which) return "";
    return path + " is " + which +
           ", and the rights that come with it would be lost: run a copy without them (cp " +
           "drops them), or under mpiexec without Fermata";
}

std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> words;
    for (size_t at = 0; at < line.size();) {
        at = line.find_first_not_of(" \t", at);
        if (at == std::string::npos) break;
        size_t end = line.find_first_of(" \t", at);
        if (end == std::string::npos) end = line.size();
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

// The arguments that run script `path`: its interpreter, option, and itself. {} when it is no script.
std::vector<std::string> script_command(const std::string& path, char* const* environment,
                                        std::string& error) {
    char head[256] = {};  // BINPRM_BUF_SIZE: the kernel reads no more of the line
    auto [fd, number, why] = files::open_regular(path, O_RDONLY);
    if (!fd) {
        error = path + " cannot be read: " + why;
        return {};
    }
    auto got = size_t(std::max<ssize_t>(::pread(fd.get(), head, sizeof head - 1, 0), 0));
    std::string line(head, head + got);
    line.resize(line.find('\n') == std::string::npos ? line.size() : line.find('\n'));
    if (!line.starts_with("#!")) {
        if (std::memcmp(head, "\177ELF", 4) == 0) return {};
        if (got == 0) {
            error = path + " is empty, not a program";
        } else if (line.find('\0') != std::string::npos) {
            error = path + " is neither an ELF program nor a script";
        } else {
            return {"/bin/sh", path};  // what execvp and every shell do with ENOEXEC
        }
        return {};
    }
    std::vector<std::string> words = words_of(line.substr(2));
    if (words.empty()) {
        error = "script " + path + " names no interpreter after #!";
        return {};
    }
    std::string interpreter = words[0];
    if (!interpreter.empty() && interpreter.back() == '\r') {
        error = "script " + path + " has DOS line ends: its interpreter would be \"" +
                interpreter.substr(0, interpreter.size() - 1) + "\\r\"";
        return {};
    }
    std::vector<std::string> command;
    size_t first = 1;
    if (words.size() > 1 && (words[1] == "-S" || words[1] == "--split-string")) first = 2;
    // With options, variables or quotes of its own env is a starter like others.
    bool only_searches = first < words.size() && !words[first].starts_with("-") &&
                         line.find_first_of("='\"\\$") == std::string::npos;
    if (interpreter.ends_with("/env") && only_searches) {
        // env would replace this process by exec; do its work here: search PATH.
        std::string found = search_path(words[first], environment, error);
        if (found.empty()) {
            error = "the interpreter of script " + path + " is missing: " + error;
            return {};
        }
        command.push_back(found);
        if (first == 2)
            command.insert(command.end(), words.begin() + 3, words.end());
        else if (words.size() > 2) {
            error = "the interpreter of script " + path + " is missing: env is asked for \"" +
                    line.substr(line.find(words[1])) + "\"; use env -S";
            return {};
        }
    } else {
        if (!regular(interpreter)) {
            error = "the interpreter " + interpreter + " of script " + path + " does not exist";
            return {};
        }
        command.push_back(absolute(interpreter));
        size_t option = line.find_first_not_of(" \t", line.find(interpreter) + interpreter.size());
        if (option != std::string::npos) {  // everything behind it is one argument
            std::string rest = line.substr(option);
            while (!rest.empty() && (rest.back() == ' ' || rest.back() == '\t')) rest.pop_back();
            if (!rest.empty()) command.push_back(rest);
        }
    }
    command.push_back(path);
    return command;
}

MpiAbi abi_of(const std::string& name) {
    if (!name.starts_with("libmpi") && !name.starts_with("libopen_mpi.so")) return MpiAbi::none;
    if (name == "libmpi_abi.so.1") return MpiAbi::standard;
    if (name.ends_with(".so.40") || name.find(".so.40.") != std::string::npos) return MpiAbi::openmpi;
    if (name.ends_with(".so.12") || name.find(".so.12.") != std::string::npos) return MpiAbi::mpich;
    return MpiAbi::none;
}

bool is_loader_or_libc(const std::string& path) {
    std::string name = last_part(path.c_str());
    return name == "libc.so.6" || name == "libselinux.so.1" || name.starts_with("ld-linux");
}

// Follows what a program needs, and notes every way to an MPI library.
class Libraries {
  public:
    Libraries(const std::string& front_dir, LibrarySearch& search, ProgramCheck& check)
        : front_dir_(front_dir), search_(search), check_(check) {}

    // Breadth first, as ld.so loads.
    void follow(const ElfFile& program) {
        std::deque<Item> items;  // addresses stay
        items.push_back({program, nullptr});
        std::set<std::string> seen;
        for (size_t i = 0; i < items.size(); ++i) {
            std::vector<const ElfFile*> chain;
            for (const Item* it = &items[i]; it; it = it->parent) chain.insert(chain.begin(), &it->file);
            for (const std::string& name : std::vector<std::string>(items[i].file.needed)) {
                if (!seen.insert(name).second) continue;
                std::string path = search_.find(name, chain);
                ElfFile file;
                bool readable = !path.empty() && file.read(path).empty();
                if (is_mpi(name, file, path, items[i].file.path)) continue;
                if (!readable) {
                    check_.missing.push_back(name);
                    continue;
                }
                check_.libraries.push_back(path);
                seen.insert(file.soname);
                items.push_back({std::move(file), &items[i]});
            }
        }
    }

    void preloaded(const std::string& list, const ElfFile& program) {
        for (size_t at = 0; at < list.size();) {
            size_t end = std::min(list.find_first_of(" :", at), list.size());
            std::string name = list.substr(at, end - at), path = search_.find(name, {&program});
            at = end + 1;
            ElfFile file;
            if (path.empty() || !file.read(path).empty() || is_mpi(name, file, path, "LD_PRELOAD")) continue;
            check_.preloaded.push_back(path);
        }
    }

  private:
    struct Item {
        ElfFile file;
        const Item* parent;
    };

    // Is it a library that a front stands for? By the name that is asked for, or that of the file found.
    bool is_mpi(const std::string& asked, const ElfFile& file, const std::string& path,
                const std::string& by) {
        const std::string& soname = abi_of(asked) != MpiAbi::none ? asked : file.soname;
        MpiAbi abi = abi_of(soname);
        if (abi == MpiAbi::none) return false;
        std::string front = front_dir_ + "/" + soname;
        bool given = front_dir_.empty() || access(front.c_str(), R_OK) == 0;
        if (given || soname == asked) {  // companions without a front of their own are followed
            if (check_.abi == MpiAbi::none) check_.abi = abi;
            if (std::find(check_.mpi_names.begin(), check_.mpi_names.end(), soname) == check_.mpi_names.end())
                check_.mpi_names.push_back(soname);
            check_.which.push_back({by, asked, path, given && !front_dir_.empty() ? front : ""});
        }
        return given;
    }

    const std::string& front_dir_;
    LibrarySearch& search_;
    ProgramCheck& check_;
};

}  // namespace

const char* name_of(MpiAbi abi) {
    switch (abi) {
        case MpiAbi::none:
            return "none";
        case MpiAbi::openmpi:
            return "openmpi";
        case MpiAbi::mpich:
            return "mpich";
        case MpiAbi::standard:
            return "standard";
    }
    return "?";
}

std::string why_no_starter(const ProgramCheck& check) {
    if (check.abi != MpiAbi::none) return "";
    for (const std::string& path : {check.binary, check.program})
        if (const Elsewhere* elsewhere = starts_elsewhere(path.c_str()))
            return check.program + " " + elsewhere->why;
    struct stat s {};
    bool other_user = stat(check.binary.c_str(), &s) == 0 &&
                      (((s.st_mode & S_ISUID) != 0 && s.st_uid != geteuid()) ||
                       ((s.st_mode & S_ISGID) != 0 && s.st_gid != getegid() && geteuid() != 0));
    if (other_user)
        return check.program +
               " runs as another user (set-user-ID), and what it starts would be without Fermata: "
               "start the MPI program directly";
    return "";
}

bool is_starter(const ProgramCheck& check) {
    if (check.abi != MpiAbi::none) return false;
    if (is_starter_by_name(check.binary.c_str()) || is_starter_by_name(check.program.c_str())) return true;
    std::string said = variable(nullptr, "FERMATA_START");
    if (said == "native" || said == "split") return said == "native";
    std::vector<std::string> files{check.binary};
    for (const std::string& library : check.libraries)
        if (!is_loader_or_libc(library)) files.push_back(library);
    for (const std::string& path : files) {
        ElfFile file;
        if (!file.read(path).empty()) return false;
        for (const DynamicSymbol& symbol : dynamic_symbols(file))
            if (!symbol.defined && (symbol.name == "dlopen" || symbol.name == "dlmopen")) return false;
    }
    return true;
}

ProgramCheck inspect_program(const std::string& name, const std::string& front_dir,
                             char* const* environment) {
    ProgramCheck check;
    check.program = search_path(name, environment, check.error);
    if (!check.error.empty()) return check;
    check.binary = check.program;
    // An error about an interpreter is said of its script.
    auto refuse = [&](const std::string& why) {
        check.error = check.prefix.empty()
                          ? why
                          : "the interpreter of script " + check.program + " does not serve: " + why;
        return check;
    };
    for (int depth = 0;; ++depth) {
        if (std::string why = why_not_runnable(check.binary); !why.empty()) return refuse(why);
        std::vector<std::string> command = script_command(check.binary, environment, check.error);
        if (!check.error.empty()) return check;
        if (command.empty()) break;
        if (depth == kScriptDepth) {
            check.error = "script " + check.program + " has interpreters that are scripts, too deeply";
            return check;
        }
        check.binary = command[0];
        // {interpreter, option, script}: the script stands where it was in the command so far.
        if (!check.prefix.empty())
            command.insert(command.end(), check.prefix.begin() + 1, check.prefix.end());
        check.prefix = std::move(command);
    }
    // As /proc/self/exe would name it, and ld.so's $ORIGIN needs it: /usr/bin/java finds its libraries that
    // way.
    if (char* real = realpath(check.binary.c_str(), nullptr)) {
        check.binary = real;
        std::free(real);
    }
    ElfFile file;
    std::string why = file.read(check.binary);
    if (!why.empty()) return refuse(check.binary + " " + why);
    check.position_independent = file.header.e_type == ET_DYN;
    if (std::string lost = rights_lost(check.binary); !lost.empty()) return refuse(lost);
    if (file.interpreter.empty() && file.soname.starts_with("ld-linux"))
        return refuse(check.binary + " is the dynamic linker: name the program itself, without it");
    if (file.interpreter.empty())
        return refuse(check.binary +
                      (file.header.e_type == ET_DYN && !file.soname.empty()
                           ? " is a library, not a program"
                           : " is statically linked: its MPI cannot be replaced; link it dynamically"));
    check.loader = file.interpreter;
    if (!regular(check.loader))
        return refuse("the dynamic loader " + check.loader + " that " + check.binary +
                      " asks for does not exist");
    LibrarySearch search(variable(environment, "LD_LIBRARY_PATH"));
    Libraries libraries(front_dir, search, check);
    libraries.preloaded(variable(environment, "LD_PRELOAD"), file);
    libraries.follow(file);
    return check;
}

}  // namespace fermata::split
