#include "cli/manual.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "base/text.h"
#include "base/version.h"
#include "cli/help.h"

namespace fermata::cli {
namespace {

// Text as man(7) takes it: no character of it is a command.
std::string plain(const std::string& text) {
    std::string safe;
    for (char c : text) {
        if (c == '\\')
            safe += "\\e";
        else if (c == '-')
            safe += "\\-";
        else if (c == '\'')
            safe += "\\(aq";
        else if (c == '`')
            safe += "\\(ga";
        else if (c == '"')
            safe += "\\(dq";
        else if (c == '~')
            safe += "\\(ti";
        else if (c == '^')
            safe += "\\(ha";
        else
            safe += c;
    }
    if (safe.starts_with(".")) safe.insert(0, "\\&");
    return safe;
}

std::string bold(const std::string& text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + plain(text) + "\\fR"; }

std::string options_of(const CLI::App& command) {
    std::string text;
    for (const CLI::Option* option : command.get_options()) {
        const std::string value = value_of(*option);
        std::string names;
        if (option->nonpositional())
            for (const auto& [dash, all] :
                 {std::pair{"-", option->get_snames()}, {"--", option->get_lnames()}})
                for (const std::string& name : all) names += (names.empty() ? "" : ", ") + bold(dash + name);
        text += ".TP\n" + names + (names.empty() || value.empty() ? "" : " ");
        text +=
            (value.empty() && !names.empty() ? "" : italic(value.empty() ? option->get_name(true) : value)) +
            "\n";
        text += plain(option->get_description()) + "\n";
        if (!option->get_envname().empty()) text += "Default: $" + bold(option->get_envname()) + ".\n";
    }
    return text;
}

// Indented lines stay as they are, others are filled; an empty one ends a paragraph.
std::string examples(const CLI::App& command) {
    std::string text = ".SH EXAMPLES\n", line;
    bool fixed = false, first = true, ended = false;
    std::istringstream lines(examples_of(command));
    while (std::getline(lines, line)) {
        if (line == "Examples:" || line == "Example:") continue;
        const bool indented = line.starts_with("  ");
        if (fixed && !indented) text += ".fi\n";
        if (ended && !line.empty() && !first) text += ".PP\n";
        if (!fixed && indented) text += ".nf\n";
        if (!line.empty()) text += plain(indented ? line.substr(2) : line) + "\n", first = false;
        ended = line.empty();
        fixed = indented;
    }
    return text + (fixed ? ".fi\n" : "");
}

std::string exit_codes() {
    std::string text = ".SH EXIT STATUS\n.nf\n", line;
    std::istringstream lines(kExitCodes);
    while (std::getline(lines, line)) text += plain(line) + "\n";
    return text + ".fi\n";
}

}  // namespace

std::string manual_of(const CLI::App& app, const CLI::App& command) {
    const bool whole = &command == &app;
    const std::string name = whole ? app.get_name() : app.get_name() + "-" + command.get_name();
    std::string title = name;
    std::transform(title.begin(), title.end(), title.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    std::string text = fmt::format(".TH {} 1 \"\" \"Fermata {}\"\n.SH NAME\n{} \\- {}\n", plain(name),
                                   kVersion, plain(name), plain(command.get_description()));
    text += ".SH SYNOPSIS\n" + bold(app.get_name() + (whole ? "" : " " + command.get_name())) + " " +
            plain(usage_of(command)) + "\n.SH OPTIONS\n" + options_of(command);
    if (whole) {
        text += ".SH COMMANDS\n";
        for (const CLI::App* one : commands_of(app))
            text += fmt::format(".TP\n{}\n{}\n", bold(one->get_name()), plain(one->get_description()));
    }
    text += examples(command) + exit_codes() + ".SH SEE ALSO\n";
    std::string others = whole ? "" : "\\fBfermata\\fR(1)";
    for (const CLI::App* one : commands_of(app))
        if (one != &command)
            others +=
                fmt::format("{}\\fBfermata\\-{}\\fR(1)", others.empty() ? "" : ",\n", plain(one->get_name()));
    return text + others + "\n";
}

}  // namespace fermata::cli
