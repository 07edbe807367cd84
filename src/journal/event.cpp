#include "journal/event.h"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "base/error.h"
#include "base/invariant.h"
#include "base/text.h"
#include "journal/ranks.h"

namespace fermata::journal {
namespace {

using nlohmann::json;

constexpr struct {
    Kind kind;
    const char* name;
} kKinds[] = {
    {Kind::start, "start"},
    {Kind::running, "running"},
    {Kind::request, "request"},
    {Kind::phase, "phase"},
    {Kind::checkpoint, "checkpoint"},
    {Kind::copy, "copy"},
    {Kind::renewal, "renewal"},
    {Kind::masked, "masked"},
    {Kind::replica, "replica"},
    {Kind::loss, "loss"},
    {Kind::end, "end"},
    {Kind::restart, "restart"},
    {Kind::given_up, "given-up"},
    {Kind::injected, "injected"},
    {Kind::log, "log"},
    {Kind::ranks, "ranks"},
};

constexpr size_t kMostText = 2000;  // of a field that is a line for people
constexpr int kMostDepth = 8;  // ours are lists in an object; what is deep is copied and written by recursion

std::string time_text(int64_t ms) {
    time_t seconds = static_cast<time_t>(ms / 1000);
    tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[32];
    ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    return fmt::format("{}.{:03}Z", text, ms % 1000);
}

// "2026-11-26T09:00:00.123Z", and nothing else.
std::optional<int64_t> time_of(const std::string& text) {
    constexpr std::string_view kForm = "0000-00-00T00:00:00.000Z";
    if (text.size() != kForm.size()) return {};
    for (size_t i = 0; i < kForm.size(); ++i)
        if (kForm[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != kForm[i]) return {};
    auto number = [&](size_t at, size_t digits) { return std::stoi(text.substr(at, digits)); };
    tm parts{};
    parts.tm_year = number(0, 4) - 1900;
    parts.tm_mon = number(5, 2) - 1;
    parts.tm_mday = number(8, 2);
    parts.tm_hour = number(11, 2);
    parts.tm_min = number(14, 2);
    parts.tm_sec = number(17, 2);
    const int year = parts.tm_year;
    if (year < 70) return {};
    int64_t ms = static_cast<int64_t>(::timegm(&parts)) * 1000 + number(20, 3);
    // timegm() takes the 32nd of a month for a day of the next one.
    return time_text(ms) == text ? std::optional(ms) : std::nullopt;
}

// The end of a text goes, at the border of a character.
void clip(std::string& text, size_t most) {
    if (text.size() <= most) return;
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
    text.resize(most);
    text += " …";
}

std::string dumped(const Event& event, size_t most_text) {
    nlohmann::ordered_json line = {{"time", time_text(event.time_ms)},
                                   {"event", name_of(event.kind)},
                                   {"job", fmt::format("{:016x}", event.job)}};
    for (auto& [name, value] : event.fields.items()) {
        if (line.contains(name)) continue;
        json kept;
        if (value.is_array()) {
            kept = json::array();
            size_t left = most_text * 4;
            for (const json& one : value) {
                size_t size = one.is_string() ? one.get_ref<const std::string&>().size() : 8;
                if (size > left) break;
                left -= size;
                kept.push_back(one);
            }
        } else {
            kept = value;
            if (kept.is_string()) clip(kept.get_ref<std::string&>(), most_text);
        }
        line[name] = std::move(kept);
    }
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string what_became_of_copy(const std::string& what) {
    if (what == "made") return "it has a copy";
    if (what == "refused") return "it gets no copy";
    if (what == "ended") return "its copy has ended";
    if (what == "leads") return "its copy has its place";
    return "its copy: " + what;
}

std::string about_ranks(const RanksTook& took) {
    const RanksTook::Phase* longest = took.longest_wait();
    if (longest == nullptr) return "no times of ranks";
    return fmt::format("the slowest: rank {}{}, {}: {:.3f} s (all ranks on average {:.3f} s)",
                       longest->slowest[longest->worst()],
                       longest->host.empty() ? "" : " on " + visible(longest->host), visible(longest->name),
                       longest->seconds[longest->worst()], longest->mean);
}

}  // namespace

const char* name_of(Kind kind) {
    for (const auto& one : kKinds)
        if (one.kind == kind) return one.name;
    always(false, "an event of a kind without a name");
    return "";
}

std::optional<Kind> kind_of(const std::string& word) {
    for (const auto& one : kKinds)
        if (one.name == word) return one.kind;
    return {};
}

std::string to_line(const Event& event) {
    always(event.fields.is_object(), "an event whose fields have no names");
    auto checked = [](std::string line) {  // as parse_line() wants it
        always(line.find('\n') == line.size() - 1 && line.size() <= kMostLine,
               "an event that is not one line");
        return line;
    };
    for (size_t most = kMostText; most > 8; most /= 2)
        if (std::string line = dumped(event, most); line.size() <= kMostLine) return checked(std::move(line));
    return checked(dumped({event.kind, event.job, event.time_ms, json::object()}, kMostText));
}

std::optional<Event> parse_line(const std::string& line) {
    if (line.empty() || line.size() > kMostLine) return {};
    bool deep = false;
    json read = json::parse(
        line,
        [&](int depth, json::parse_event_t, json&) {
            deep = deep || depth > kMostDepth;
            return !deep;
        },
        false);
    if (deep || !read.is_object()) return {};
    auto text = [&](const char* name) {
        auto found = read.find(name);
        return found != read.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    auto kind = kind_of(text("event"));
    auto time = time_of(text("time"));
    const std::string job = text("job");
    Event event;
    auto [at, error] = std::from_chars(job.data(), job.data() + job.size(), event.job, 16);
    if (!kind || !time || job.size() != 16 || error != std::errc{} || at != job.data() + job.size())
        return {};
    event.kind = *kind;
    event.time_ms = *time;
    for (const char* name : {"event", "time", "job"}) read.erase(name);
    event.fields = std::move(read);
    return event;
}

std::string text_in(const Event& event, const char* name, const std::string& otherwise) {
    auto found = event.fields.find(name);
    return found != event.fields.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

double number_in(const Event& event, const char* name, double otherwise) {
    auto found = event.fields.find(name);
    if (found == event.fields.end() || !found->is_number()) return otherwise;
    double number = found->get<double>();
    return std::isfinite(number) ? number : otherwise;
}

std::string sentence(const Event& event) {
    // Some have several lines: one sentence here.
    auto text = [&](const char* name) {
        std::string all, line;
        std::istringstream lines(text_in(event, name));
        while (std::getline(lines, line)) all += (all.empty() ? "" : "; ") + visible(line);
        return all;
    };
    auto number = [&](const char* name) { return number_in(event, name); };
    auto size_of = [&](const char* name) {
        return human_size(static_cast<uint64_t>(std::clamp(number(name), 0.0, 1e18)));
    };
    auto bytes = [&] { return size_of("bytes"); };
    auto with = [](const std::string& what, const std::string& word) {
        return word.empty() ? std::string() : what + word;
    };
    switch (event.kind) {
        case Kind::start:
            return fmt::format("{} starts{} with {:.0f} ranks{}", text("name"),
                               with(" again, from ", text("restored")), number("ranks"),
                               with(" on ", text("host")));
        case Kind::running:
            return fmt::format("every rank runs, after {:.2f} s", number("seconds"));
        case Kind::request:
            return fmt::format("a checkpoint is asked for ({}){}", text("origin"),
                               event.fields.value("stop", json()) == true ? ", and then the end" : "");
        case Kind::phase:
            return fmt::format("{}: {:.3f} s{}{}", text("phase"), number("seconds"),
                               with(", the last on ", text("last")),
                               with(", where it waited: ", text("waits")));
        case Kind::masked:
            return fmt::format("{}; all ranks went on after {:.2f} s", text("line"), number("seconds"));
        case Kind::injected:
            return fmt::format("failure {:.0f} is injected: rank {:.0f}{}, process {:.0f}{}",
                               number("number"), number("rank"),
                               event.fields.value("copy", json()) == true ? "'s copy" : "", number("pid"),
                               with(" on ", text("host")));
        case Kind::replica:
            if (text("what") == "wanted")
                return "copies are wanted of " +
                       (number("wanted") > 0 ? "ranks " + text("ranks") : "no rank");
            return fmt::format("rank {:.0f}: {}{}", number("rank"), what_became_of_copy(text("what")),
                               with(": ", text("why")));
        case Kind::log:
            return fmt::format("rank {:.0f}: {} of its message log are in files, {} in memory",
                               number("rank"), size_of("spilled"), size_of("held"));
        case Kind::ranks:
            return about_ranks(ranks_took(event));
        case Kind::renewal:
            return fmt::format("renewal: {}", text("line"));
        case Kind::checkpoint:
            if (event.fields.value("ok", json()) != true)
                return fmt::format("no checkpoint: {}", text("line"));
            if (text("level") == "program")
                return fmt::format("the program has saved its own state, {}, in {:.2f} s", text("generation"),
                                   number("seconds"));
            return fmt::format("checkpoint {}: {} in {:.2f} s", text("generation"), bytes(),
                               number("seconds"));
        case Kind::copy:
            if (event.fields.value("ok", json()) != true)
                return fmt::format("no copy of {} in {}: {}", text("generation"), text("level"), text("why"));
            return fmt::format("{} is in {}, too: {} in {:.2f} s", text("generation"), text("level"), bytes(),
                               number("seconds"));
        case Kind::loss:
            return text("why");
        case Kind::end:
            return fmt::format("ended with {:.0f}{}", number("code"), with(": ", text("why")));
        case Kind::restart:
            return fmt::format("restart {:.0f} from {} in {:.0f} s", number("number"),
                               text("from").empty() ? "its own state" : text("from"), number("pause"));
        case Kind::given_up:
            return fmt::format("given up: {}", text("why"));
    }
    return {};
}

}  // namespace fermata::journal
