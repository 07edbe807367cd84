#include "cli/help.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "image/save_options.h"

namespace fs = std::filesystem;

namespace fermata::cli {

const char* const kExitCodes =
    R"(Exit codes (run and restart end as mpiexec does, with the program's code; besides):
  0  done                                      5  no such job, or several to choose from
  1  failed; stderr says what and what to do   6  the generation is missing, incomplete or damaged
  2  the command line is wrong                 7  restart: the job has ended with 0 already
  3  the checkpoint was refused or cancelled  85  run, restart: checkpointed and stopped:
  4  not committed in time                        `fermata restart` continues it
                                             143  run, restart: cancelled
)";

namespace {

struct Text {
    const char* usage;
    const char* footer;
};

const std::map<std::string, Text>& texts() {
    static const std::map<std::string, Text> all = {
        {"fermata", {"COMMAND [OPTIONS]", R"(Examples:
  fermata run -n 4 -- ./solver input.nml     instead of: mpiexec -n 4 ./solver input.nml
  fermata checkpoint                         from another shell, at any moment
  fermata checkpoint --stop                  ... and end the job (its run exits with 85)
  fermata restart                            continue it, here or elsewhere
  fermata help run                           the options of a command
)"}},
        {"run", {"[OPTIONS] [--] PROG [ARGS...] [: [MPIEXEC-OPTIONS] PROG [ARGS...]]", R"(Examples:
  fermata run -n 4 -- ./solver input.nml
  fermata run -n 64 --interval 30m --walltime 11h45m -- ./solver     exit code 85: fermata restart continues it
  fermata run -n 4 --bind-to core -x OMP_NUM_THREADS=2 -- ./solver   mpiexec's own options are handed on
  fermata run -n 1 -- ./atm namelist : -n 3 ./ocn                    several programs in one world
  fermata run --check -- ./solver                                    what the program needs
)"}},
        {"restart", {"[OPTIONS]", R"(Examples:
  fermata restart                                 the newest generation in fermata-ckpt
  fermata restart --ckpt-dir ckpt --generation 7
  fermata restart --mpi mpich                     on the other library
)"}},
        {"checkpoint", {"[OPTIONS]", R"(Examples:
  fermata checkpoint                   of the only job that runs here; returns once the generation is committed
  fermata checkpoint --stop --job solver-4711
)"}},
        {"status", {"[OPTIONS]", "Example:\n  fermata status --waits\n"}},
        {"renew", {"[OPTIONS]", R"(Examples:
  fermata renew --job solver-4711
  fermata renew --job solver-4711 --env UCX_TLS=tcp,self
  fermata renew --job solver-4711 --mpi mpich

At a safe moment every rank gets a fresh MPI library in place, of the same kind or another: no image is written, the program stays where it is.
For jobs under `fermata run --launcher own`.
)"}},
        {"replicas", {"[OPTIONS] [all|N|P%|LIST|+LIST|-LIST]", R"(Examples:
  fermata replicas --job solver-4711             which ranks have a copy, or why not
  fermata replicas --job solver-4711 50%         every other rank; 0: none
  fermata replicas --job solver-4711 +3,8-11     these, too; -LIST: these no more

Returns 0 once the wanted copies are there, 3 with the reason where one cannot be, 4 when T was not enough.
For jobs under `fermata run --replicas` or `--message-log`.
)"}},
        {"cancel", {"[OPTIONS]", "Example:\n  fermata cancel --job solver-4711\n"}},
        {"list", {"[OPTIONS]", "Example:\n  fermata list --ckpt-dir ckpt\n"}},
        {"verify", {"[OPTIONS]", "Example:\n  fermata verify --ckpt-dir ckpt --generation 7\n"}},
        {"inspect", {"[OPTIONS]", "Example:\n  fermata inspect --ckpt-dir ckpt --regions\n"}},
        {"compact", {"[OPTIONS]", "Example:\n  fermata compact --ckpt-dir ckpt --keep 1\n"}},
        {"report", {"[OPTIONS] [DIR]", R"(Examples:
  fermata report                                   the newest job in fermata-ckpt: fermata-report.html
  fermata report ckpt -o solver.html --bandwidth 2GB/s
)"}},
        {"predict", {"[OPTIONS] [DIR]", R"(Examples:
  fermata predict                                 from the journal in fermata-ckpt: what its newest job measured
  fermata predict ckpt --mtbf 6h --plot cost.svg
  fermata predict --checkpoint 300s --restart 600s --mtbf 1h --interval 10m
  fermata predict --levels "memory 2s 5h, buddy 20s 2d, files 300s 20d"
  fermata predict -n 256 --rank-mtbf 5000d --replicas 25%,50%,100% --checkpoint 60s
  fermata predict --memory 4TB --bandwidth 500MB/s --storage 200TB --disk 1TB     how long a dump takes
)"}},
        {"batch", {"[OPTIONS] -- [OPTIONS OF RUN] [--] PROG [ARGS...]", R"(Examples:
  fermata batch --slot 48h -- -n 64 -- ./solver input.nml > job.sh && sbatch job.sh
  fermata batch --slot 2h..48h --total 96h --option --partition=spare -- -n 64 -- ./solver > job.sh
  fermata batch --scheduler sge --slot 8h -- -n 16 -- ./solver > job.sh && qsub job.sh
)"}},
        {"doctor", {"[OPTIONS]", R"(Examples:
  fermata doctor
  fermata doctor --admin --ckpt-dir /scratch/ckpt     for whoever runs this machine
  fermata doctor --sweep                              as root, in an epilog
)"}},
    };
    return all;
}

// Where the pages are: of an installation, or of the source tree that this was built in.
std::string pages() {
    std::error_code error;
    fs::path prefix = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
    for (const fs::path& place : {prefix / "share/doc/fermata/docs", prefix.parent_path() / "docs"})
        if (fs::exists(place / "usage.md", error)) return place.string();
    return "docs/ of Fermata's source";
}

class Help : public CLI::Formatter {
  public:
    std::string make_usage(const CLI::App* app, std::string name) const override {
        return fmt::format("Usage: {} {}\n", name, usage_of(*app));
    }
};

// "a, b, c" in lines of at most so many characters.
std::string wrapped(const std::string& list, size_t width) {
    std::string text, line;
    for (size_t at = 0; at < list.size();) {
        size_t end = std::min(list.find(", ", at), list.size() - 2) + 2;
        std::string one = list.substr(at, end - at);
        if (line.size() + one.size() > width) text += std::exchange(line, "") + "\n  ";
        line += one;
        at = end;
    }
    return text + line;
}

std::string footer_of(const CLI::App& app) {
    return fmt::format("{}\n{}\nPages: {} (usage.md, limits.md, ...)", examples_of(app), kExitCodes, pages());
}

}  // namespace

std::string usage_of(const CLI::App& app) {
    auto text = texts().find(app.get_name());
    return text == texts().end() ? "[OPTIONS]" : text->second.usage;
}

std::string examples_of(const CLI::App& app) {
    const std::string name = app.get_name();
    auto text = texts().find(name);
    std::string said = text == texts().end() ? "" : text->second.footer;
    if (app.get_option_no_throw("--save-options"))
        said += fmt::format("\nWords of --save-options, with blanks or commas between them:\n  {}\n",
                            wrapped(image::save_option_words(), 100));
    if (name == "run" || name == "restart")
        said +=
            "\nOptions of mpiexec (-host, --hostfile, --oversubscribe, --bind-to, --map-by, -x, -genv, -ppn, "
            "...) are\n"
            "handed on to it where they are the chosen library's; any other words for it go into "
            "--mpiexec-args.\n";
    return said;
}

std::string value_of(const CLI::Option& option) {
    if (option.get_items_expected_max() == 0) return "";
    const std::string type = option.get_type_name();  // perhaps with what is checked: "NAME:{a,b}"
    return type.substr(0, type.find(":{"));
}

std::vector<CLI::App*> commands_of(const CLI::App& app) {
    // The function is const where it takes one that is.
    std::vector<CLI::App*> all;
    for (const CLI::App* one :
         app.get_subcommands(static_cast<std::function<bool(const CLI::App*)>>(nullptr)))
        all.push_back(const_cast<CLI::App*>(one));
    return all;
}

void describe(CLI::App& app) {
    auto formatter = std::make_shared<Help>();
    formatter->column_width(28);
    app.formatter(formatter);
    app.footer(footer_of(app));
    for (CLI::App* sub : commands_of(app)) {
        sub->formatter(formatter);
        sub->footer(footer_of(*sub));
    }
}

std::string help_of(const CLI::App& app) { return app.help(); }
std::string help_of(const CLI::App& app, const CLI::App& subcommand) {
    return subcommand.help(app.get_name());
}

CLI::App& command_of(const CLI::App& app, const std::string& name) {
    std::vector<std::string> names = {"help"};
    for (CLI::App* sub : commands_of(app)) {
        if (sub->get_name() == name) return *sub;
        names.push_back(sub->get_name());
    }
    std::string near = nearest(name, names);
    throw Error(
        fmt::format("there is no command '{}'{}; there are: {} (fermata help)", visible(name),
                    near.empty() ? "" : fmt::format(", the nearest is '{}'", near), fmt::join(names, ", ")),
        ExitCode::usage);
}

}  // namespace fermata::cli
