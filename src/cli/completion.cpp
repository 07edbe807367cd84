#include "cli/completion.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/help.h"

namespace fermata::cli {
namespace {

// Words that a shell offers behind an option.
struct Offer {
    enum class Kind { none, files, folders, words } kind;
    std::string words;  // with blanks between them
};

Offer offer_of(const CLI::Option& option) {
    using Kind = Offer::Kind;
    const std::string value = value_of(option);
    if (value.starts_with("FILE")) return {Kind::files, ""};
    if (value == "DIR") return {Kind::folders, ""};
    const auto& names = option.get_lnames();
    auto is = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    if (is("mpi")) return {Kind::words, "openmpi mpich auto"};
    if (is("launcher")) return {Kind::words, "mpiexec srun own auto"};
    if (is("scheduler")) return {Kind::words, "slurm sge lsf htcondor"};
    if (is("protocol")) return {Kind::words, "cc-d cc 2pc"};
    if (is("generation")) return {Kind::words, "latest"};
    std::string words, word;
    for (char c : value + "|") {
        if (c != '|') {
            word += c;
            continue;
        }
        // In capitals, or with a mark in it, it stands for something else.
        if (!word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos)
            words += (words.empty() ? "" : " ") + word;
        word.clear();
    }
    return words.empty() ? Offer{Kind::none, ""} : Offer{Kind::words, words};
}

std::vector<std::string> spellings(const CLI::Option& option) {
    std::vector<std::string> all;
    for (const std::string& name : option.get_snames()) all.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) all.push_back("--" + name);
    return all;
}

// In single quotes, for bash and zsh; fish knows \' inside of them.
std::string in_quotes(const std::string& text, const char* quote = "'\\''") {
    std::string safe = "'";
    for (char c : text) safe += c == '\'' ? quote : std::string(1, c);
    return safe + "'";
}

std::string command_names(const CLI::App& app) {
    std::string names;
    for (const CLI::App* one : commands_of(app)) names += one->get_name() + " ";
    return names + "help";
}

// Two cases for each command: what may follow an option, and which options there are.
std::string bash_cases(const CLI::App& command) {
    std::string all, offers, taking;
    for (const CLI::Option* option : command.get_options()) {
        if (!option->nonpositional()) continue;
        const std::vector<std::string> names = spellings(*option);
        all += fmt::format("{} ", fmt::join(names, " "));
        if (value_of(*option).empty()) continue;
        taking += fmt::format("{} ", fmt::join(names, " "));
        const Offer offer = offer_of(*option);
        offers += fmt::format("                {}) ", fmt::join(names, "|"));
        // Names of files are readline's work: it quotes what is in them.
        if (offer.kind == Offer::Kind::files) offers += "compopt -o default 2>/dev/null; ";
        if (offer.kind == Offer::Kind::folders) offers += "compopt -o dirnames 2>/dev/null; ";
        if (offer.kind == Offer::Kind::words)
            offers += fmt::format("COMPREPLY=($(compgen -W {} -- \"$word\")); ", in_quotes(offer.words));
        offers += "return 0 ;;\n";
    }
    return fmt::format(
        "        {})\n"
        "            options={}\n"
        "            taking={}\n"
        "            case $before in\n{}            esac ;;\n",
        command.get_name(), in_quotes(all), in_quotes(taking), offers);
}

// Behind the program of `run` the words are the program's.
std::string bash(const CLI::App& app) {
    std::string cases;
    for (const CLI::App* one : commands_of(app)) cases += bash_cases(*one);
    return fmt::format(R"(# Made by `fermata help --as bash`.
_fermata() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} options taking i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W '{0} --help --version' -- "$word"))
        return
    fi
    case $command in
        help) ((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W '{0}' -- "$word")); return ;;
{1}        *) return ;;
    esac
    if [[ $command == run ]]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [[ ${{COMP_WORDS[i]}} == -- ]]; then ((i++)); break; fi
            [[ ${{COMP_WORDS[i]}} == -* ]] || break
            [[ " $taking " == *" ${{COMP_WORDS[i]}} "* ]] && ((i++))
        done
        if ((i < COMP_CWORD)); then
            compopt -o default 2>/dev/null
            return 0
        fi
    fi
    [[ $word == -* ]] || compopt -o default 2>/dev/null
    [[ $word == -* || -z $word ]] && COMPREPLY+=($(compgen -W "$options" -- "$word"))
    return 0
}}
complete -F _fermata fermata
)",
                       command_names(app), cases);
}

// Text for a specification of _arguments, where ] and : end it.
std::string zsh_text(const std::string& text) {
    std::string safe;
    for (char c : text) {
        if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
        safe += c;
    }
    return safe;
}

std::string zsh(const CLI::App& app) {
    std::string names, cases;
    for (const CLI::App* one : commands_of(app)) {
        names += fmt::format("    {}\n", in_quotes(one->get_name() + ":" + zsh_text(one->get_description())));
        cases += fmt::format("    ({})\n      _arguments -S", one->get_name());
        for (const CLI::Option* option : one->get_options()) {
            if (!option->nonpositional()) continue;
            const Offer offer = offer_of(*option);
            const std::string value = value_of(*option);
            std::string tail = value.empty() ? "" : ":" + zsh_text(value) + ":";
            if (offer.kind == Offer::Kind::files) tail += "_files";
            if (offer.kind == Offer::Kind::folders) tail += "_files -/";
            if (offer.kind == Offer::Kind::words) tail += "(" + offer.words + ")";
            for (const std::string& name : spellings(*option))
                cases += " \\\n        " +
                         in_quotes(name + "[" + zsh_text(option->get_description()) + "]" + tail);
        }
        cases += fmt::format(" \\\n        {} ;;\n",
                             one->get_name() == "run" ? "'*::program:_normal'" : "'*:folder:_files -/'");
    }
    return fmt::format(R"(#compdef fermata
# Made by `fermata help --as zsh`.
_fermata() {{
  local -a commands=(
{}    'help:the options of a command'
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
    (help) _describe command commands ;;
{}  esac
}}
_fermata "$@"
)",
                       names, cases);
}

std::string fish(const CLI::App& app) {
    std::string text = "# Made by `fermata help --as fish`.\ncomplete -c fermata -f\n";
    auto line = [&](const std::string& when, const std::string& words, const std::string& said) {
        text += fmt::format("complete -c fermata -n {} {} -d {}\n", in_quotes(when), words,
                            in_quotes(said, "\\'"));
    };
    for (const CLI::App* one : commands_of(app))
        line("__fish_use_subcommand", "-a " + one->get_name(), one->get_description());
    line("__fish_use_subcommand", "-a help", "the options of a command");
    line("__fish_seen_subcommand_from help", "-a " + in_quotes(command_names(app)), "");
    for (const CLI::App* one : commands_of(app))
        for (const CLI::Option* option : one->get_options()) {
            if (!option->nonpositional()) continue;
            const Offer offer = offer_of(*option);
            std::string words;
            for (const std::string& name : option->get_snames()) words += "-s " + name + " ";
            for (const std::string& name : option->get_lnames()) words += "-l " + name + " ";
            if (!value_of(*option).empty()) words += offer.kind == Offer::Kind::none ? "-x" : "-r";
            if (offer.kind == Offer::Kind::files) words += " -F";
            if (offer.kind == Offer::Kind::folders) words += " -a '(__fish_complete_directories)'";
            if (offer.kind == Offer::Kind::words) words += " -f -a " + in_quotes(offer.words);
            line("__fish_seen_subcommand_from " + one->get_name(), words, option->get_description());
        }
    text += "complete -c fermata -n '__fish_seen_subcommand_from run report predict' -F\n";
    return text;
}

}  // namespace

std::string completion_of(const CLI::App& app, const std::string& shell) {
    if (shell == "bash") return bash(app);
    if (shell == "zsh") return zsh(app);
    if (shell == "fish") return fish(app);
    throw Error(fmt::format("help --as takes man, bash, zsh or fish, not '{}'", visible(shell)),
                ExitCode::usage);
}

}  // namespace fermata::cli
