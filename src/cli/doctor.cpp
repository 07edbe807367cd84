// `fermata doctor`: what this machine has of what Fermata needs; `fermata run --check`: what a program needs
// of it.
#include "cli/doctor.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <linux/membarrier.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/fd.h"
#include "base/new_code.h"
#include "base/text.h"
#include "cli/admin.h"
#include "cli/commands.h"
#include "cli/leftovers.h"
#include "image/pager.h"
#include "launch/launcher_options.h"
#include "launch/library.h"
#include "launch/library_at.h"
#include "launch/program_place.h"
#include "split/loader/behind.h"
#include "split/loader/library_search.h"
#include "split/loader/mpi_imports.h"
#include "split/loader/program.h"
#include "split/pages/soft_dirty.h"
#include "split/pages/write_protect.h"
#include "tree/run_dir.h"

namespace fs = std::filesystem;
using nlohmann::json;

namespace fermata::cli {
namespace {

// AT_HWCAP2 bit 1 on x86-64: wrfsbase may be used by programs.
constexpr unsigned long kFsgsbase = 2;

Finding how_pages_are_followed() {
    std::string why, why_no_bits;
    const char* how = nullptr;
    if (Fd(split::open_write_protection(why)))
        how = "asynchronous write protection";
    else if (split::open_soft_dirty(why_no_bits).faults)
        how = "soft-dirty bits";
    return {"incremental", how != nullptr, false,
            how ? fmt::format("pages are followed by {} (incremental=hashes compares checksums)", how)
                : fmt::format("all memory is compared with the checksums of the last image: {}; {}", why,
                              why_no_bits)};
}

// Where Fermata and the MPI libraries keep what lives as long as a job: sockets, and memory that ranks share.
std::vector<std::string> scratch_places() {
    std::vector<std::string> places = {"/tmp"};
    for (const char* variable : {"TMPDIR", "FERMATA_RUN_DIR"})
        if (const char* given = std::getenv(variable); given && *given && fs::path(given) != places[0])
            places.emplace_back(given);
    places.emplace_back("/dev/shm");
    return places;
}

// Open MPI wants some 4 MiB per rank there, and says little when it does not get them.
constexpr uint64_t kNearlyFull = 64 << 20;

Finding room_in(const std::string& place) {
    std::error_code error;
    fs::space_info space = fs::space(place, error);
    if (error) return {place, false, false, fmt::format("cannot be looked at: {}", error.message())};
    bool good = space.available >= kNearlyFull;
    return {
        place, good, false,
        fmt::format("{} free{}", human_size(space.available),
                    good ? "" : ": nearly full, and jobs keep sockets and shared memory there; make room")};
}

// Every soname that a front stands for, and what goes by that name on this machine.
Finding which_mpi(const std::string& front_dir) {
    std::string names;
    split::LibrarySearch search(std::getenv("LD_LIBRARY_PATH") ? std::getenv("LD_LIBRARY_PATH") : "");
    split::ElfFile nobody;
    std::set<std::string> fronts;
    std::error_code error;
    for (fs::directory_iterator at(front_dir, error), end; !error && at != end; at.increment(error))
        if (std::string name = at->path().filename().string(); name.starts_with("libmpi"))
            fronts.insert(name);
    for (const std::string& name : fronts) {
        std::string found = search.find(name, {&nobody});
        names +=
            fmt::format("{}{}{}", names.empty() ? "" : ", ", name, found.empty() ? "" : " (" + found + ")");
    }
    bool asked = ::access((front_dir + "/libfermata-which.so").c_str(), R_OK) == 0;
    return {
        "which libmpi", asked, true,
        asked
            ? fmt::format(
                  "a program that asks for a file whose soname is one of {} gets Fermata's: by name, path or "
                  "link, DT_NEEDED, DT_RUNPATH, LD_LIBRARY_PATH, LD_PRELOAD or dlopen; other MPI libraries "
                  "end it",
                  names)
            : front_dir + "/libfermata-which.so is missing: programs that open MPI by path get the real one"};
}

std::string mpiexec_of(const launch::Library& library) {
    if (!library.mpiexec.empty()) return fmt::format("{} ({})", library.mpiexec, launch::version_of(library));
    const std::string kept = launch::kept_for_modules(library.mpi);
    return "no mpiexec in PATH" +
           (kept.empty() ? "" : fmt::format("; one is at {}: load its module, or --mpi {}", kept, kept));
}

std::vector<Finding> look_around() {
    std::vector<Finding> all;
    std::string why;
    utsname system{};
    ::uname(&system);
    all.push_back({"kernel", true, false, fmt::format("{} {}", system.sysname, system.release)});
    all.push_back(how_pages_are_followed());
    Fd faults(image::open_faults(why));
    all.push_back({"mapped restart", static_cast<bool>(faults), false,
                   faults ? "memory can be read when it is touched" : "images are read first: " + why});
    bool fsgsbase = (::getauxval(AT_HWCAP2) & kFsgsbase) != 0;
    all.push_back(
        {"fsgsbase", fsgsbase, false, fsgsbase ? "yes" : "no: crossings between the halves are slower"});
    long barriers = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    bool membarrier = barriers > 0 && (barriers & MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    all.push_back({"membarrier", membarrier, true, membarrier ? "yes" : "no: checkpoints would be unsafe"});
    const std::string no_code = why_no_new_code();
    all.push_back({"changing code", no_code.empty(), true, no_code.empty() ? "yes" : no_code});
    bool pidfd = false;
    if (int fd = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)); fd >= 0) {
        pidfd = true;
        ::close(fd);
    }
    all.push_back({"pidfd", pidfd, false, pidfd ? "yes" : "no: ranks of a dead job may be left running"});
    rlimit space{}, files{}, stack{};
    ::getrlimit(RLIMIT_AS, &space);
    ::getrlimit(RLIMIT_NOFILE, &files);
    ::getrlimit(RLIMIT_STACK, &stack);
    bool unlimited = space.rlim_cur == RLIM_INFINITY;
    all.push_back(
        {"address space", unlimited, true,
         unlimited ? "unlimited" : fmt::format("{} KiB; use ulimit -v unlimited", space.rlim_cur / 1024)});
    all.push_back({"open files", files.rlim_cur >= 256, false,
                   fmt::format("{} (at most {})", files.rlim_cur, files.rlim_max)});
    all.push_back({"stack", true, false,
                   stack.rlim_cur == RLIM_INFINITY
                       ? "unlimited: ranks start again with 8 MiB and a top-down layout"
                       : human_size(stack.rlim_cur)});
    try {
        all.push_back({"run directory", true, true, tree::run_base()});
    } catch (const Error& error) {
        all.push_back({"run directory", false, true, error.what()});
    }
    for (const std::string& place : scratch_places()) all.push_back(room_in(place));
    launch::Places places = launch::find_places();
    std::string noded = places.libexec + "/noded";
    all.push_back({"node daemon", ::access(noded.c_str(), X_OK) == 0, true, noded});
    std::string fronts;
    std::error_code error;
    for (fs::directory_iterator at(places.front_dir, error), end; !error && at != end; at.increment(error))
        fronts += (fronts.empty() ? "" : " ") + at->path().filename().string();
    all.push_back({"fronts", !fronts.empty(), true,
                   fmt::format("{}: {}", places.front_dir, fronts.empty() ? "none" : fronts)});
    all.push_back(which_mpi(places.front_dir));
    bool any = false;
    for (const launch::Library& launcher : launch::all_libraries(places)) {
        std::string found = mpiexec_of(launcher);
        split::MpiLibrary library;
        if (launcher.lower.empty())
            found += "; no lower half built for it";
        else
            library = split::mpi_library_of(launcher.lower, places.front_dir);
        if (!library.lacking.empty())
            found += fmt::format(
                "; {} of {} MPI functions are its own, Fermata makes the others or answers with an MPI error "
                "(names: --json)",
                library.known - library.lacking.size(), library.known);
        if (launcher.usable(true) && !any)
            found += "; --mpi auto takes it where a program's own library is not seen";
        any = any || launcher.usable(true);
        all.push_back({launcher.mpi, launcher.usable(true), false, found, library.lacking});
    }
    if (!any) all.push_back({"mpi", false, true, "no usable MPI library"});
    return all;
}

}  // namespace

void add_doctor(CLI::App* app, DoctorOptions& o) {
    app->add_flag("--admin", o.admin,
                  "also what whoever runs this machine can change: limits, file systems, Slurm, leftovers");
    app->add_flag("--sweep", o.sweep,
                  "remove what dead jobs have left here (root: of all users), and say so");
    app->add_option("--ckpt-dir", o.ckpt_dir,
                    "with --admin: checkpoints shall be here (default fermata-ckpt)")
        ->type_name("DIR");
    app->add_flag("--json", o.json, "answer as JSON");
}

int doctor(const DoctorOptions& options) {
    const bool as_json = options.json;
    std::vector<Finding> all;
    auto add = [&](std::vector<Finding> more) { all.insert(all.end(), more.begin(), more.end()); };
    if (options.admin || !options.sweep) add(look_around());
    if (options.admin) {
        add(limits_of_machine());
        add(file_systems(options.ckpt_dir));
        add(slurm_around());
    }
    if (options.admin || options.sweep) add({look_for_leftovers(options.sweep)});
    bool good = true;
    json j = json::array();
    for (const Finding& f : all) {
        if (!f.ok && f.needed) good = false;
        if (as_json) {
            j.push_back({{"what", f.what}, {"ok", f.ok}, {"needed", f.needed}, {"found", f.found}});
            if (!f.lacks.empty()) j.back()["lacks"] = f.lacks;
        } else
            std::printf("%-4s %-14s %s\n",
                        f.ok       ? "ok"
                        : f.needed ? "FAIL"
                                   : "-",
                        f.what.c_str(), f.found.c_str());
    }
    if (as_json) std::printf("%s\n", j.dump(2, ' ', false, json::error_handler_t::replace).c_str());
    return good ? 0 : 1;
}

namespace {

// A script, a wrapper, Python: MPI comes with what it loads or starts.
std::string said_of(const split::MpiImports& imports, const split::ProgramCheck& check) {
    if (check.mpi_names.empty())
        return fmt::format(
            "no MPI is visible in {}: what it loads or starts later is not seen. If that uses MPI, it "
            "runs on the library that `fermata doctor` names, or --mpi; check the MPI program itself",
            check.prefix.empty() ? "it" : "this script or its interpreter");
    std::string mpi = fmt::format("built for {} ({})", name_of(check.abi), fmt::join(check.mpi_names, ", "));
    return mpi + (imports.functions.empty()
                      ? "; imports no MPI function by name"
                      : fmt::format("; imports {} MPI functions, all supported", imports.functions.size()));
}

std::string said_of(const split::MpiAsked& one) {
    return fmt::format("{} for {}: {}{}", one.asked, one.by,
                       one.given.empty() ? "no front, the library itself" : one.given,
                       one.found.empty()        ? ", natively nothing is found"
                       : one.found == one.given ? ""
                                                : " instead of " + one.found);
}

struct Checked {
    json j;
    std::string verdict;  // "" = it can run
};

Checked check_program(const launch::Part& part, bool as_json) {
    launch::Places places = launch::find_places();
    std::string program = part.program.at(0), starter;
    split::ProgramCheck check =
        launch::find_program(program, launch::split_words(part.mpiexec_args), places.front_dir).check;
    std::string verdict = check.error;
    if (verdict.empty()) verdict = split::why_no_starter(check);
    if (verdict.empty() && split::is_starter(check)) {
        starter = check.program;
        auto behind = split::program_behind(part.program, check, places.front_dir);
        if (behind) {
            check = std::move(*behind);
            program = check.program;
        }
    }
    if (verdict.empty() && !check.missing.empty())
        verdict =
            fmt::format("{} needs libraries that are not there: {}", program, fmt::join(check.missing, ", "));
    split::MpiImports imports;
    if (verdict.empty()) imports = split::mpi_imports(check, places.front_dir);
    if (!imports.absent.empty())
        verdict = fmt::format("{} calls what no MPI here has: {}", program, fmt::join(imports.absent, ", "));
    else if (!imports.refused.empty())
        verdict = fmt::format("{} calls what Fermata answers with MPI_ERR_UNSUPPORTED_OPERATION: {}", program,
                              fmt::join(imports.refused, ", "));
    Checked checked{{}, verdict};
    if (as_json) {
        json& j = checked.j;
        j = {{"ok", verdict.empty()},        {"error", verdict},           {"program", check.program},
             {"binary", check.binary},       {"mpi", name_of(check.abi)},  {"mpi_libraries", check.mpi_names},
             {"libraries", check.libraries}, {"missing", check.missing},   {"functions", imports.functions},
             {"absent", imports.absent},     {"refused", imports.refused}, {"starter", starter}};
        j["which"] = json::array();
        for (const split::MpiAsked& one : check.which)
            j["which"].push_back(
                {{"by", one.by}, {"asked", one.asked}, {"found", one.found}, {"given", one.given}});
    } else if (verdict.empty()) {
        if (!starter.empty() && check.abi == split::MpiAbi::none) {
            fmt::print(
                "{}: no MPI is visible in it: it runs natively until it starts an MPI program, which is not "
                "seen before; --mpi says on which library\n",
                visible(starter));
            return checked;
        }
        if (!starter.empty()) fmt::print("{} starts, as far as its words tell:\n", visible(starter));
        fmt::print("{}{}: {}\n", visible(check.program),
                   check.binary == check.program ? "" : fmt::format(" ({})", visible(check.binary)),
                   visible(said_of(imports, check)));
        for (const split::MpiAsked& one : check.which) fmt::print("  {}\n", visible(said_of(one)));
        fmt::print(
            "  what it opens while it runs (dlopen by name, path or link) is answered in the same way\n");
    }
    return checked;
}

}  // namespace

int check_programs(const std::vector<launch::Part>& programs, bool as_json) {
    std::string verdict;
    json all = json::array();
    for (const launch::Part& part : programs) {
        Checked one = check_program(part, as_json);
        if (verdict.empty()) verdict = one.verdict;
        all.push_back(std::move(one.j));
    }
    // One program is an object, several are a list of them.
    const json& said = all.size() == 1 ? all[0] : all;
    if (as_json) std::printf("%s\n", said.dump(2, ' ', false, json::error_handler_t::replace).c_str());
    if (!verdict.empty()) fail("{}", verdict);
    return 0;
}

}  // namespace fermata::cli
