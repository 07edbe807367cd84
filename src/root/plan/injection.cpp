#include "root/plan/injection.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace fermata::root {
namespace {

constexpr int64_t kMissedMs = 500;  // then nobody was killed who had that number
constexpr double kMostShape = 100;

[[noreturn]] void refuse(const std::string& words, const std::string& why) {
    throw Error(fmt::format("--inject {}: {}", visible(words), why), ExitCode::usage);
}

template <class Number>
Number number_of(const std::string& text, const std::string& words, const char* what) {
    Number number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size())
        refuse(words, fmt::format("{} takes a number, not '{}'", what, visible(text)));
    return number;
}

// One of two words: true for the second.
bool second(const std::string& text, const char* first, const char* other, const std::string& words) {
    if (text != first && text != other)
        refuse(words, fmt::format("'{}' is neither {} nor {}", visible(text), first, other));
    return text == other;
}

uint64_t mixed(uint64_t state) {
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
    state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
    return state ^ (state >> 31);
}

}  // namespace

Injection Injection::parse(const std::string& words) {
    Injection what;
    const size_t colon = std::min(words.find(':'), words.size());
    const bool weibull = words.substr(0, colon) == "weibull";
    if (!weibull && words.substr(0, colon) != "exponential")
        refuse(words, "say weibull:shape=0.7,scale=20s,seed=1 or exponential:mtbf=5s,seed=1");
    std::string_view left = words;
    left.remove_prefix(std::min(colon + 1, words.size()));
    while (!left.empty()) {
        const std::string one(left.substr(0, left.find(',')));
        left.remove_prefix(std::min(one.size() + 1, left.size()));
        const size_t equals = std::min(one.find('='), one.size());
        const std::string name = one.substr(0, equals),
                          value = equals < one.size() ? one.substr(equals + 1) : "";
        if (name == (weibull ? "scale" : "mtbf"))
            what.scale = parse_duration(value, "--inject " + name);
        else if (name == "shape" && weibull)
            what.shape = number_of<double>(value, words, "shape");
        else if (name == "seed")
            what.seed = number_of<uint64_t>(value, words, "seed");
        else if (name == "per")
            what.per_process = second(value, "system", "process", words);
        else if (name == "replace")
            what.replace = second(value, "no", "yes", words);
        else
            refuse(words, fmt::format("'{}' is no word of it", visible(one)));
    }
    if (!(what.scale > 0)) refuse(words, weibull ? "scale=T is missing" : "mtbf=T is missing");
    if (!(what.shape > 0) || what.shape > kMostShape) refuse(words, "shape is more than 0, at most 100");
    return what;
}

double Injection::time_of(double u) const { return scale * std::pow(-std::log1p(-u), 1 / shape); }

double Draws::next() {
    state_ += 0x9e3779b97f4a7c15;
    return static_cast<double>(mixed(state_) >> 11) * 0x1p-53;
}

Injector::Injector(const Injection& what, uint32_t life)
    : what_(what), seed_(what.seed + (uint64_t{life} << 32)), draws_(seed_) {}

int64_t Injector::drawn() {
    const double seconds = std::min(what_.time_of(draws_.next()), kLongestDuration);
    return static_cast<int64_t>(std::llround(seconds * 1000));
}

void Injector::begin(int64_t now) {
    begun_ = now;
    next_ = now + drawn();
}

std::optional<Injector::Process> Injector::due(int64_t now, std::vector<Process> living) {
    std::erase_if(living, [this](const Process& one) { return dead_.count(one.pid) > 0; });
    if (begun_ == 0 || living.empty() || now < asked_ + kMissedMs) return {};
    auto who = what_.per_process ? by_itself(now, living) : of_the_job(now, living);
    if (who) asked_ = now;
    return who;
}

// Whoever it is when the time has come.
std::optional<Injector::Process> Injector::of_the_job(int64_t now, const std::vector<Process>& living) {
    if (now < next_) return {};
    if (whom_ < 0) whom_ = draws_.next();
    return living[static_cast<size_t>(whom_ * static_cast<double>(living.size()))];
}

// A process of a rank keeps its time when a renewal gives it another number.
std::optional<Injector::Process> Injector::by_itself(int64_t now, const std::vector<Process>& living) {
    std::optional<Process> first;
    int64_t when = now;
    for (const Process& one : living) {
        auto [at, fresh] = units_.try_emplace({one.rank, one.copy});
        Unit& unit = at->second;
        if (fresh || (one.copy && unit.pid != one.pid)) {
            Draws own(mixed(seed_ + static_cast<uint64_t>(one.rank) * 0x10001) + nth_[one.rank]++);
            unit.dies = now + std::llround(std::min(what_.time_of(own.next()), kLongestDuration) * 1000);
        }
        unit.pid = one.pid;
        if (unit.dies > when) continue;
        when = unit.dies;
        first = one;
    }
    return first;
}

void Injector::killed(int32_t pid) {
    dead_.insert(pid);
    ++count_;
    asked_ = 0;
    whom_ = -1;
    next_ += drawn();
}

void Injector::leads(int32_t rank) {
    auto copy = units_.extract({rank, true});
    if (copy) units_[{rank, false}] = copy.mapped();
}

}  // namespace fermata::root
